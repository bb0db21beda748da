package verbs

import (
	"fmt"
	"reflect"
	"strings"
)

// word is the name of a value of an enumeration, or of one flag.
type word struct {
	value uint64
	name  string
}

// wordList is what the values of a type are called, in the spelling of the C headers without their
// prefix.
type wordList struct {
	flags bool
	words []word
}

var accessWords = []word{{uint64(AccessLocalWrite), "LOCAL_WRITE"}, {uint64(AccessRemoteWrite), "REMOTE_WRITE"}, {uint64(AccessRemoteRead), "REMOTE_READ"},
	{uint64(AccessRemoteAtomic), "REMOTE_ATOMIC"}, {uint64(AccessMWBind), "MW_BIND"}, {uint64(AccessZeroBased), "ZERO_BASED"},
	{uint64(AccessOnDemand), "ON_DEMAND"}, {uint64(AccessHugetlb), "HUGETLB"}, {uint64(AccessFlushGlobal), "FLUSH_GLOBAL"},
	{uint64(AccessFlushPersistent), "FLUSH_PERSISTENT"}, {uint64(AccessRelaxedOrdering), "RELAXED_ORDERING"}}

var wcOpcodeWords = []word{{uint64(WCOpSend), "SEND"}, {uint64(WCOpRDMAWrite), "RDMA_WRITE"}, {uint64(WCOpRDMARead), "RDMA_READ"},
	{uint64(WCOpCompSwap), "COMP_SWAP"}, {uint64(WCOpFetchAdd), "FETCH_ADD"}, {uint64(WCOpBindMW), "BIND_MW"}, {uint64(WCOpLocalInv), "LOCAL_INV"},
	{uint64(WCOpTSO), "TSO"}, {uint64(WCOpAtomicWrite), "ATOMIC_WRITE"}, {uint64(WCOpRecv), "RECV"}, {uint64(WCOpRecvRDMAImm), "RECV_RDMA_WITH_IMM"},
	{uint64(WCOpDriver1), "DRIVER1"}, {uint64(WCOpDriver2), "DRIVER2"}, {uint64(WCOpDriver3), "DRIVER3"}}

var wrOpcodeWords = []word{{uint64(WRRDMAWrite), "RDMA_WRITE"}, {uint64(WRRDMAWriteImm), "RDMA_WRITE_WITH_IMM"}, {uint64(WRSend), "SEND"},
	{uint64(WRSendImm), "SEND_WITH_IMM"}, {uint64(WRRDMARead), "RDMA_READ"}, {uint64(WRAtomicCmpSwp), "ATOMIC_CMP_AND_SWP"},
	{uint64(WRAtomicFetchAdd), "ATOMIC_FETCH_AND_ADD"}, {uint64(WRLocalInv), "LOCAL_INV"}, {uint64(WRBindMW), "BIND_MW"},
	{uint64(WRSendInv), "SEND_WITH_INV"}, {uint64(WRTSO), "TSO"}, {uint64(WRDriver1), "DRIVER1"}, {uint64(WRAtomicWrite), "ATOMIC_WRITE"}}

var qpMaskWords = []word{{uint64(QPMaskState), "STATE"}, {uint64(QPMaskCurState), "CUR_STATE"}, {uint64(QPMaskEnSQDAsyncNotify), "EN_SQD_ASYNC_NOTIFY"},
	{uint64(QPMaskAccessFlags), "ACCESS_FLAGS"}, {uint64(QPMaskPKeyIndex), "PKEY_INDEX"}, {uint64(QPMaskPort), "PORT"}, {uint64(QPMaskQKey), "QKEY"},
	{uint64(QPMaskAV), "AV"}, {uint64(QPMaskPathMTU), "PATH_MTU"}, {uint64(QPMaskTimeout), "TIMEOUT"}, {uint64(QPMaskRetryCnt), "RETRY_CNT"},
	{uint64(QPMaskRNRRetry), "RNR_RETRY"}, {uint64(QPMaskRQPSN), "RQ_PSN"}, {uint64(QPMaskMaxQPRdAtomic), "MAX_QP_RD_ATOMIC"},
	{uint64(QPMaskAltPath), "ALT_PATH"}, {uint64(QPMaskMinRNRTimer), "MIN_RNR_TIMER"}, {uint64(QPMaskSQPSN), "SQ_PSN"},
	{uint64(QPMaskMaxDestRdAtomic), "MAX_DEST_RD_ATOMIC"}, {uint64(QPMaskPathMigState), "PATH_MIG_STATE"}, {uint64(QPMaskCap), "CAP"},
	{uint64(QPMaskDestQPN), "DEST_QPN"}, {uint64(QPMaskRateLimit), "RATE_LIMIT"}}

// wordLists has the types whose String is not their name already.
var wordLists = map[reflect.Type]wordList{
	reflect.TypeFor[AccessFlags](): {true, accessWords},
	reflect.TypeFor[WCOpcode]():    {false, wcOpcodeWords},
	reflect.TypeFor[WROpcode]():    {false, wrOpcodeWords},
	reflect.TypeFor[QPAttrMask]():  {true, qpMaskWords},
	reflect.TypeFor[WCFlags]():     {true, []word{{uint64(WCGRH), "GRH"}, {uint64(WCWithImm), "WITH_IMM"}, {uint64(WCIPCsumOK), "IP_CSUM_OK"}, {uint64(WCWithInv), "WITH_INV"}}},
	reflect.TypeFor[SendFlags](): {true, []word{{uint64(SendFence), "FENCE"}, {uint64(SendSignaled), "SIGNALED"},
		{uint64(SendSolicited), "SOLICITED"}, {uint64(SendInline), "INLINE"},
		{uint64(SendIPCsum), "IP_CSUM"}}},
	reflect.TypeFor[QPType](): {false, []word{{uint64(QPTRC), "RC"}, {uint64(QPTUC), "UC"}, {uint64(QPTUD), "UD"}, {uint64(QPTRawPacket), "RAW_PACKET"},
		{uint64(QPTXRCSend), "XRC_SEND"}, {uint64(QPTXRCRecv), "XRC_RECV"}, {uint64(QPTDriver), "DRIVER"}}},
	reflect.TypeFor[MTU](): {false, []word{{uint64(MTU256), "256 bytes"}, {uint64(MTU512), "512 bytes"}, {uint64(MTU1024), "1024 bytes"},
		{uint64(MTU2048), "2048 bytes"}, {uint64(MTU4096), "4096 bytes"}}},
	reflect.TypeFor[GIDType](): {false, []word{{uint64(GIDTypeIB), "IB"}, {uint64(GIDTypeRoCEv1), "RoCE v1"}, {uint64(GIDTypeRoCEv2), "RoCE v2"}}},
	reflect.TypeFor[LinkLayer](): {false, []word{{uint64(LinkUnspecified), "UNSPECIFIED"}, {uint64(LinkInfiniBand), "INFINIBAND"},
		{uint64(LinkEthernet), "ETHERNET"}}},
	reflect.TypeFor[PortState](): {false, []word{{uint64(PortNop), "NOP"}, {uint64(PortDown), "DOWN"}, {uint64(PortInit), "INIT"},
		{uint64(PortArmed), "ARMED"}, {uint64(PortActive), "ACTIVE"}}},
	reflect.TypeFor[AtomicCap](): {false, []word{{uint64(AtomicNone), "NONE"}, {uint64(AtomicHCA), "HCA"}, {uint64(AtomicGlob), "GLOB"}}},
	reflect.TypeFor[MWType]():    {false, []word{{uint64(MWType1), "type 1"}, {uint64(MWType2), "type 2"}}},
	reflect.TypeFor[ReregFlags](): {true, []word{{uint64(ReregTranslation), "CHANGE_TRANSLATION"}, {uint64(ReregPD), "CHANGE_PD"},
		{uint64(ReregAccess), "CHANGE_ACCESS"}}},
	reflect.TypeFor[SRQType]():     {false, []word{{uint64(SRQBasic), "BASIC"}, {uint64(SRQXRC), "XRC"}, {uint64(SRQTagMatching), "TM"}}},
	reflect.TypeFor[SRQAttrMask](): {true, []word{{uint64(SRQMaskMaxWR), "MAX_WR"}, {uint64(SRQMaskLimit), "LIMIT"}}},
	reflect.TypeFor[WireAction](): {false, []word{{uint64(WirePass), "passed"}, {uint64(WireDrop), "dropped"}, {uint64(WireCorrupt), "corrupted"},
		{uint64(WireEdit), "edited"}, {uint64(WireDelay), "delayed"}, {uint64(WireDuplicate), "duplicated"}, {uint64(WireMark), "marked"},
		{uint64(WireTruncate), "truncated"}, {uint64(WireSpoil), "spoilt"}}},
}

// Words returns a value in the words of the verbs API: for an enumeration its name (mostly that of
// the C headers without its prefix), for flags their names joined by |. Bits and values without a
// name are in hexadecimal. It returns false for a value of a type that has no such names.
func Words(v any) (string, bool) {
	if v == nil {
		return "", false
	}
	list, ok := wordLists[reflect.TypeOf(v)]
	if !ok {
		return "", false
	}
	n := reflect.ValueOf(v).Uint()
	if !list.flags {
		for _, w := range list.words {
			if w.value == n {
				return w.name, true
			}
		}
		return fmt.Sprintf("%#x (no %T)", n, v), true
	}
	var names []string
	for _, w := range list.words {
		if n&w.value != 0 {
			names = append(names, w.name)
			n &^= w.value
		}
	}
	if n != 0 || names == nil {
		names = append(names, fmt.Sprintf("%#x", n))
	}
	return strings.Join(names, "|"), true
}

// nameOf is the name of a value, or its number as one of a type's, such as "QPState(9)".
func nameOf[T ~uint8 | ~uint32](names []string, v T, typ string) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("%s(%d)", typ, v)
}
