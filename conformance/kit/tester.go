package kit

import "github.com/rdmasim/rdmasim/conformance/spec"

// TestbedAs is the testbed as an interface for what a tester does to the device from outside, such
// as verbs.DeviceRemover.
func TestbedAs[T any](c *spec.C) T { return as[T](c, c.TB, "testbed") }

// ProcessAs is the case's process as an interface that not every target implements.
func ProcessAs[T any](c *spec.C) T { return as[T](c, c.Process(), "process") }

func as[T any](c *spec.C, x any, what string) T {
	t, ok := x.(T)
	if !ok {
		c.Errorf("the target's %s is no %T", what, new(T))
	}
	return t
}
