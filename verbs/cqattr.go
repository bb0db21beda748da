package verbs

// CQAttr is what ibv_create_cq and ibv_create_cq_ex take.
type CQAttr struct {
	CQE        int
	Context    any
	Channel    CompChannel
	CompVector int
	// Ex selects ibv_create_cq_ex; the fields below are ignored without it.
	Ex             bool
	WCFlags        uint64
	CompMask       uint32
	Flags          uint32 // 1 single threaded, 2 ignore overrun
	ParentDomain   PD
	CQESize        int   // mlx5dv: 0 default, 64 or 128
	CQEPad         bool  // mlx5dv: a 64-byte CQE padded to 128
	CQECompression uint8 // mlx5dv: cqe_comp_res_format, one of CQEComp*; 0 for no compression
}

// Formats of compressed CQEs (MLX5DV_CQE_RES_FORMAT_*).
const (
	CQECompHash            = 1 << 0
	CQECompCsum            = 1 << 1
	CQECompCsumStrideIndex = 1 << 2
)

// CQECompCaps is mlx5dv_cqe_comp_caps: the most completions in one compressed session (0: no
// compression), and the formats.
type CQECompCaps struct{ MaxNum, Formats uint32 }

// CQ creation flags.
const (
	CQSingleThreaded uint32 = 1 << 0
	CQIgnoreOverrun  uint32 = 1 << 1
)

// What an extended CQ reports besides wr_id and status (CQAttr.WCFlags, IBV_WC_EX_WITH_*).
const (
	WCExByteLen             uint64 = 1 << 0
	WCExImm                 uint64 = 1 << 1
	WCExQPNum               uint64 = 1 << 2
	WCExSrcQP               uint64 = 1 << 3
	WCExSLID                uint64 = 1 << 4
	WCExSL                  uint64 = 1 << 5
	WCExDLIDPathBits        uint64 = 1 << 6
	WCExCompletionTimestamp uint64 = 1 << 7
	WCExTimestampWallclock  uint64 = 1 << 11
)

// CQModeration holds back completion events until Count completions or for Period microseconds,
// whichever is first (ibv_modify_cq). Zero: no such condition.
type CQModeration struct{ Count, Period uint16 }
