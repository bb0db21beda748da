package hca

// CQArm is which completions that are in a CQ when it is armed make the arm report an event at
// once. The InfiniBand specification asks for none: an event is for the next completion that is
// added. A device of the mlx5 family must look back at least as far as the consumer index of the
// arm, since its drivers leave that look to it (Linux 6.12, mlx5_ib_arm_cq:
// IB_CQ_REPORT_MISSED_EVENTS finds software completions only).
type CQArm uint8

// Rules.
const (
	// ArmUnannounced: those at or behind the arm's consumer index that no event has announced
	// (last_notified_index of the context).
	ArmUnannounced CQArm = iota
	// ArmUnpolled: all at or behind the arm's consumer index.
	ArmUnpolled
)
