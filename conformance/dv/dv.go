// Package dv holds the cases of area DV: mlx5 direct verbs (libmlx5's mlx5dv.h).
package dv

import (
	"github.com/rdmasim/rdmasim/conformance/kit"
	"github.com/rdmasim/rdmasim/conformance/spec"
	"github.com/rdmasim/rdmasim/verbs"
)

// Register adds the cases.
func Register(s *spec.Suite) {
	registerCreation(s)
	registerQueues(s)
	registerMemory(s)
	registerDC(s)
	registerMkey(s)
}

// direct is the context as direct verbs see it.
func direct(c *spec.C, e *kit.Env) verbs.DirectVerbs {
	d, ok := e.Ctx.(verbs.DirectVerbs)
	if !ok {
		c.Errorf("the target's contexts have no direct verbs")
	}
	return d
}

// directQP is the QP as direct verbs see it.
func directQP(c *spec.C, q *kit.QP) verbs.DirectQP {
	d, ok := q.QP.(verbs.DirectQP)
	if !ok {
		c.Errorf("the target's queue pairs have no direct verbs")
	}
	return d
}

// directEx is the extended way to post on a QP with operations of direct verbs.
func directEx(c *spec.C, q *kit.QP) verbs.DirectQPEx {
	x, ok := q.Ex().(verbs.DirectQPEx)
	if !ok {
		c.Errorf("the target's extended way to post has no direct verbs")
	}
	return x
}
