package hca

// RepeatScheme is how a device with SelectiveRepeat recovers from loss. What mlx5 does is not
// public: each is a hypothesis, from what is published of it or of others. With all of them a
// responder executes what it has kept in the order of PSNs, so that only the wire shows the
// difference, and a READ whose responses are lost is asked for again from the first that is
// missing.
type RepeatScheme uint8

// Schemes.
const (
	// RepeatSingle: a NAK names the packet that is missing, which alone is sent again (US patent
	// 10,430,374 of Mellanox).
	RepeatSingle RepeatScheme = iota
	// RepeatSACK: each packet that comes early draws a NAK with the PSN that is expected and its
	// own; the requester sends all again that is missing below the highest of these, once, and
	// never more than RepeatWindow ahead of the oldest that is not acknowledged (Mittal et al.,
	// IRN, SIGCOMM 2018). Its RTO_high is RepeatTimeout; RTO_low, for three packets in flight and
	// fewer, is left out.
	RepeatSACK
	// RepeatByOperation is RepeatSingle for WRITEs, READs and atomics; what takes a receive goes
	// back N (US patent 11,870,590 of Mellanox).
	RepeatByOperation
)

// askAgainShare is for which part of the window a requester with RepeatSACK asks for an ACK: it may
// not come to stand. IRN acknowledges every packet; the share is assumed.
const askAgainShare = 8
