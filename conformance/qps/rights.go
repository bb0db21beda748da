package qps

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/player"
)

// room is memory enough for the queues of a case.
const room = 1 << 20

func rawPacketWithoutRight(c *spec.C) {
	o := kit.OpenUnprivileged(c, room)
	_, err := o.DoErr(c, player.CreateQP, kit.Args{"type": uint64(verbs.QPTRawPacket)}, nil)
	c.Errno("create_qp of RAW_PACKET without CAP_NET_RAW", err, syscall.EPERM)
	o.CreateQP(c, player.CreateQP, nil)
}

func privilegedQKey(c *spec.C) {
	o := kit.OpenUnprivileged(c, room)
	q := o.CreateQP(c, player.CreateQP, kit.Args{"type": uint64(verbs.QPTUD)})
	args := kit.Args{"qp": q.ID, "to": uint64(verbs.QPSInit), "type": uint64(verbs.QPTUD), "qkey": 0x80000001}
	_, err := o.DoErr(c, player.Connect, args, o.GID[:])
	c.ErrnoIn("INIT with a privileged Q_Key", err, syscall.EPERM)
	c.Equal("state", verbs.QPState(o.Do(c, player.QueryQP, kit.Args{"qp": q.ID}, nil).Values["state"]), verbs.QPSReset)
}

// highestQKey takes the greatest Q_Keys that are for everybody, and the least that is not.
func highestQKey(c *spec.C) {
	o := kit.OpenUnprivileged(c, room)
	for _, key := range []uint64{0x40000000, 0x7fffffff} {
		q := o.CreateQP(c, player.CreateQP, kit.Args{"type": uint64(verbs.QPTUD)})
		args := kit.Args{"qp": q.ID, "to": uint64(verbs.QPSInit), "type": uint64(verbs.QPTUD), "qkey": key}
		_, err := o.DoErr(c, player.Connect, args, o.GID[:])
		c.Errno(fmt.Sprintf("INIT with Q_Key %#x", key), err, 0)
	}
}
