package oracle

// Rule is one of the numbered rules that a capture is judged by.
type Rule struct {
	ID   string `json:"id"`
	Text string `json:"text"` // what is wrong when it applies
	// Needs names the options without which the rule is not judged, or judged only in part.
	Needs string `json:"needs,omitempty"`
	// Blind says why no verdict is given; empty when the rule is judged.
	Blind string `json:"blind,omitempty"`
	// Complete says that a verdict rests on what was not seen: it is inconclusive unless the
	// capture has every frame (Options.Complete).
	Complete bool `json:"complete,omitempty"`
}

// Rules returns all rules in the order of their IDs.
func Rules() []Rule { return append([]Rule(nil), rules[:]...) }

// Bound returns the end of a reliable connection that a rule binds, "requester" or "responder", or
// "" for a rule that binds both ends, or no connection.
func Bound(rule string) string {
	switch {
	case rule >= "OR-027" && rule <= "OR-056":
		return "requester"
	case rule >= "OR-057" && rule <= "OR-087":
		return "responder"
	}
	return ""
}

var rules = [...]Rule{
	{ID: "OR-001", Text: "capture times go backwards, or interface drop counter > 0, or ring lost frames"},
	{ID: "OR-002", Text: "a response acknowledges a PSN never seen sent, or a delivered PSN is skipped without NAK/loss mark"},
	{ID: "OR-003", Text: "UDP destination port 4791 but source port outside 0xC000..0xFFFF"},
	{ID: "OR-004", Text: "UDP source port of one QP direction changes while connected"},
	{ID: "OR-005", Text: "requester and responder of a pair use different source ports though flow label is 0"},
	{ID: "OR-006", Text: "IPv4: IHL != 5, or MF/offset != 0"},
	{ID: "OR-007", Text: "IPv4 DF clear"},
	{ID: "OR-008", Text: "IP header checksum wrong (unless offloaded by tap)"},
	{ID: "OR-009", Text: "UDP length != IP payload length, or not 8 + multiple of 4, or < 8+12+4"},
	{ID: "OR-010", Text: "UDP checksum non-zero and wrong"},
	{ID: "OR-011", Text: "ICRC wrong on a frame that no fault corrupted"},
	{ID: "OR-012", Text: "a frame with wrong ICRC (injected) causes any response or state change", Complete: true},
	{ID: "OR-013", Text: "TVer != 0"},
	{ID: "OR-014", Text: "reserved BTH bits non-zero (byte 4 low 6, byte 8 low 7), AETH syndrome bit 7, XRCETH/DETH/RDETH reserved bytes"},
	{ID: "OR-015", Text: "opcode reserved or not of the QP's transport"},
	{ID: "OR-016", Text: "frame shorter than headers + pad + 4 for its opcode"},
	{ID: "OR-017", Text: "PadCnt != (-payload)&3, i.e. First/Middle/atomic with pad, or pad on empty payload"},
	{ID: "OR-018", Text: "pad bytes non-zero"},
	{ID: "OR-019", Text: "P_Key does not match the pair's configured key (7.4)", Needs: "PKey"},
	{ID: "OR-020", Text: "DestQP reserved for the wrong use: 0 on RoCE, 0xFFFFFF in RC/UC"},
	{ID: "OR-021", Text: "SE set on anything but last/only of SEND or WRITE with imm"},
	{ID: "OR-022", Text: "AckReq set on a response, UC or UD packet"},
	{ID: "OR-023", Text: "MigReq differs from the path state (MIGRATED: 1)"},
	{ID: "OR-024", Text: "DSCP/ECN/TTL differ between packets of a QP without reason (CE marks excepted)"},
	{ID: "OR-025", Text: "RoCEv1/IB: GRH.PayLen, LRH.PktLen inconsistent with the frame; NxtHdr != 0x1B; IPVer != 6"},
	{ID: "OR-026", Text: "IB: VCRC wrong; VL15 with QPN != 0; QP0 not on VL15; LNH/GRH mismatch"},
	{ID: "OR-027", Text: "first request PSN != configured/CM starting PSN", Needs: "StartPSN", Complete: true},
	{ID: "OR-028", Text: "a new request packet's PSN != next PSN (last + 1, or last + n after READ), mod 2^24"},
	{ID: "OR-029", Text: "Middle/Last without First of the same kind; First/Only inside an unfinished message; mixed kinds"},
	{ID: "OR-030", Text: "First/Middle payload != M; Last 0 or > M; Only > M"},
	{ID: "OR-031", Text: "WRITE: total payload != RETH.length; RETH in Middle/Last impossible by opcode"},
	{ID: "OR-032", Text: "immediate/invalidate variants other than on the end packet (by opcode), or with length 0 Last"},
	{ID: "OR-033", Text: "RETH.length > 2^31"},
	{ID: "OR-034", Text: "READ/ATOMIC/FLUSH request with payload; ATOMIC WRITE payload != 8 or RETH.length != 8"},
	{ID: "OR-035", Text: "atomic VA not a multiple of 8"},
	{ID: "OR-036", Text: "retransmission differs from the original in opcode, length, payload, RETH, imm (READ restart excepted)"},
	{ID: "OR-037", Text: "READ restart: k = (PSN - first) not inside, or VA != VA0 + k*M, or length != len0 - k*M, or R_Key differs"},
	{ID: "OR-038", Text: "more than 2^23-1 PSNs unacknowledged", Complete: true},
	{ID: "OR-039", Text: "outstanding READ + ATOMIC > max_rd_atomic", Needs: "MaxRdAtomic", Complete: true},
	{ID: "OR-040", Text: "outstanding READ + ATOMIC > responder's max_dest_rd_atomic (known from CM)", Needs: "MaxDestRdAtomic", Complete: true},
	{ID: "OR-041", Text: "retransmission without cause: no NAK/RNR/implied NAK since, and less than T_tr since the last (re)start of the timer; by adaptive retransmission, less than 4 ms", Complete: true},
	{ID: "OR-042", Text: "retransmission by timer later than 4*T_tr + tolerance while outstanding", Needs: "Timeout", Complete: true},
	{ID: "OR-043", Text: "after NAK 0x60(p): next request packet is not p (later new PSN sent before going back allowed only if already in flight)", Complete: true},
	{ID: "OR-044", Text: "go-back-N: after restarting at r, a PSN in r..highest is skipped (selective-repeat mode: N)", Complete: true},
	{ID: "OR-045", Text: "request packet sent within the RNR time after an RNR NAK (in-flight excepted)", Complete: true},
	{ID: "OR-046", Text: "after the RNR wait the first request is not the RNR'd PSN", Complete: true},
	{ID: "OR-047", Text: "more timer/sequence retries of one PSN without progress than retry_cnt", Needs: "RetryCount", Complete: true},
	{ID: "OR-048", Text: "more RNR retries than rnr_retry (7 = unlimited)", Needs: "RNRRetry", Complete: true},
	{ID: "OR-049", Text: "any request after a fatal NAK (0x61, 62, 63) was delivered (in flight excepted)", Complete: true},
	{ID: "OR-050", Text: "stopping with outstanding requests and no error/close, before retry_cnt is used up", Blind: "a requester may stop because its program ended"},
	{ID: "OR-051", Text: "no AckReq on any outstanding packet for longer than needed: requester waits although no ACK is due", Complete: true},
	{ID: "OR-052", Text: "last/only packet of a message without AckReq and no later packet within T_tr", Complete: true},
	{ID: "OR-053", Text: "retry of part of a SEND/WRITE begins with First at a PSN that was Middle"},
	{ID: "OR-054", Text: "an implied NAK (ACK beyond an unanswered READ/ATOMIC) is not followed by a restart of it", Blind: "needs the state of the requester: the restart may come later"},
	{ID: "OR-055", Text: "requests leave the QP while a fence is due (known from context)", Blind: "a fence is not on the wire"},
	{ID: "OR-056", Text: "credits: SEND or WRITE with imm with SSN > LSN + 1 after limited credits", Complete: true},
	{ID: "OR-057", Text: "any response to UC, UD, CNP, a response, or a dropped frame", Blind: "there is no opcode for such a response; one without a request is OR-002"},
	{ID: "OR-058", Text: "ACK PSN not an executed PSN: > highest delivered in order, or never requested", Complete: true},
	{ID: "OR-059", Text: "ACK PSN goes backwards without a duplicate request", Complete: true},
	{ID: "OR-060", Text: "AckReq delivered on a new in-order SEND/WRITE and no response covering it within the deadline", Complete: true},
	{ID: "OR-061", Text: "MSN in an AETH != number of completed requests (mod 2^24) at that PSN; tolerance: may be ahead of the PSN, never of what was delivered", Complete: true},
	{ID: "OR-062", Text: "MSN decreases", Complete: true},
	{ID: "OR-063", Text: "response opcode wrong for the request at that PSN (READ response for a SEND, ATOMIC ACK for a READ, ...)"},
	{ID: "OR-064", Text: "NAK 0x60: PSN != ePSN, or nothing beyond ePSN was delivered", Complete: true},
	{ID: "OR-065", Text: "second NAK 0x60 without ePSN having been received in between (or a duplicate processed)", Complete: true},
	{ID: "OR-066", Text: "gap delivered and neither NAK nor (suppressed by an outstanding NAK/RNR) follows", Complete: true},
	{ID: "OR-067", Text: "NAK 0x60 while an RNR NAK for ePSN is outstanding", Complete: true},
	{ID: "OR-068", Text: "RNR NAK for a packet that needs no receive WQE"},
	{ID: "OR-069", Text: "RNR timer code != configured min_rnr_timer", Needs: "RNRTimer"},
	{ID: "OR-070", Text: "RNR NAK PSN != ePSN, or MSN changed by it", Complete: true},
	{ID: "OR-071", Text: "fatal NAK: PSN != PSN of the first offending packet, or sent more than once, or code not of 6.4 for the cause"},
	{ID: "OR-072", Text: "any response after a fatal NAK", Complete: true},
	{ID: "OR-073", Text: "key, range or right wrong for length > 0 and no NAK 0x62", Blind: "keys and ranges are not on the wire"},
	{ID: "OR-074", Text: "NAK for a zero-length READ/WRITE because of key or address"},
	{ID: "OR-075", Text: "error NAK in reaction to a duplicate", Complete: true},
	{ID: "OR-076", Text: "duplicate SEND/WRITE executed again (second CQE, memory changed, MSN +1)", Complete: true},
	{ID: "OR-077", Text: "duplicate SEND/WRITE with AckReq delivered, no ACK with PSN >= it within the deadline", Complete: true},
	{ID: "OR-078", Text: "duplicate ATOMIC answered with a value other than the first answer, or memory changed twice"},
	{ID: "OR-079", Text: "syndrome: credit code other than 0x1F from an SRQ QP; reserved code 010 or bit 7"},
	{ID: "OR-080", Text: "responses of an older READ/ATOMIC come after an ACK/response of a later PSN", Complete: true},
	{ID: "OR-081", Text: "response count, PSN sequence or opcode order (First, Middle.., Last / Only) wrong for the (re)request", Complete: true},
	{ID: "OR-082", Text: "READ response payload != M (First, Middle), remainder (Last), length (Only)", Complete: true},
	{ID: "OR-083", Text: "response PSN outside the reserved range", Complete: true},
	{ID: "OR-084", Text: "AETH of a READ response is not an ACK syndrome"},
	{ID: "OR-085", Text: "READ response data differs from what a model of memory allows", Blind: "the memory of the responder is not on the wire"},
	{ID: "OR-086", Text: "ATOMIC ACK PSN or payload (original value) wrong; result not old+add / compare-swap rule", Needs: "OnlyAtomics", Complete: true},
	{ID: "OR-087", Text: "response to FLUSH/ATOMIC WRITE carries payload"},
	{ID: "OR-088", Text: "UC opcode of READ/ATOMIC/invalidate, or retransmission of a UC PSN"},
	{ID: "OR-089", Text: "UC: receive completes though a packet of its message was lost", Blind: "completions are not on the wire"},
	{ID: "OR-090", Text: "UC: new First/Only delivered after a gap, resources available, message not executed", Blind: "completions are not on the wire"},
	{ID: "OR-091", Text: "UD payload > port MTU, or not an Only opcode"},
	{ID: "OR-092", Text: "UD Q_Key mismatch and still completed; or QP1 Q_Key != 0x80010000"},
	{ID: "OR-093", Text: "UD receive byte_len != payload + 40, GRH bytes wrong (v4 in last 20)", Blind: "receive buffers are not on the wire"},
	{ID: "OR-094", Text: "multicast: DestQP 0xFFFFFF with a unicast destination, wrong group MAC, or no GRH"},
	{ID: "OR-095", Text: "XRC request without XRCETH, SRQ number changing within a message, XRCETH in a response"},
	{ID: "OR-096", Text: "XRC request to an SRQ of another domain accepted", Blind: "XRC domains are not on the wire"},
	{ID: "OR-097", Text: "GMP not 256 bytes, BaseVersion != 1, CM ClassVersion != 2, Method != Send"},
	{ID: "OR-098", Text: "REP without REQ, RTU without REP, DREP without DREQ; comm IDs not swapped; TID not reused", Complete: true},
	{ID: "OR-099", Text: "data packet from the passive side before RTU or before any data of the active side", Blind: "not judged yet"},
	{ID: "OR-100", Text: "QPN, starting PSN, MTU, P_Key on data packets differ from REQ/REP", Complete: true},
	{ID: "OR-101", Text: "REP.initiator depth > REQ.responder resources"},
	{ID: "OR-102", Text: "REQ resend earlier than its timeout, more than max CM retries", Blind: "not judged yet"},
	{ID: "OR-103", Text: "service ID of the IP CM prefix but private data without version 0 header or IP version 4/6; v4 address not in the last 4 bytes", Blind: "not judged yet"},
	{ID: "OR-104", Text: "data on a QP after DREP + in-flight time", Blind: "not judged yet"},
	{ID: "OR-105", Text: "CNP malformed: opcode 0x81 without B = 1, or not 16 zero bytes, or AckReq/PSN non-zero"},
	{ID: "OR-106", Text: "CNP without any CE-marked packet delivered to that QP before (inconclusive if a switch may have marked one)", Complete: true},
	{ID: "OR-107", Text: "CE-marked delivered and no CNP for longer than min_time_between_cnps (feature on)", Needs: "CNPInterval, CNPScope other than PerQP", Complete: true},
	{ID: "OR-108", Text: "CNPs of one pacing domain closer than min_time_between_cnps", Needs: "CNPInterval, CNPScope"},
	{ID: "OR-109", Text: "sender's rate does not fall after a CNP, or never recovers", Blind: "a rate needs a longer view than a rule has"},
	{ID: "OR-110", Text: "frame of a paused priority begins after the pause took effect (+ one frame in progress)", Blind: "pause frames are not captured"},
}
