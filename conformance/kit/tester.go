package kit

import "github.com/rdmasim/rdmasim/conformance/spec"

// Tester is the testbed as one of the interfaces of what a tester does from outside, such as
// verbs.DeviceRemover.
func Tester[T any](c *spec.C) T { return as[T](c, c.TB, "testbed") }

// ProcessAs is the case's process as an interface that not every target's implements.
func ProcessAs[T any](c *spec.C) T { return as[T](c, c.Process(), "process") }

func as[T any](c *spec.C, x any, what string) T {
	t, ok := x.(T)
	if !ok {
		c.Errorf("the target's %s is no %T", what, new(T))
	}
	return t
}
