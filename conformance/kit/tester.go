package kit

import "github.com/rdmasim/rdmasim/conformance/spec"

// TestbedAs returns the testbed as an interface that a tester uses on the device from outside, such
// as verbs.DeviceRemover. A target without it ends the case without a verdict.
func TestbedAs[T any](c *spec.C) T { return as[T](c, c.TB, "testbed") }

// ProcessAs returns the case's process as an interface that not every target implements. A target
// without it ends the case without a verdict.
func ProcessAs[T any](c *spec.C) T { return as[T](c, c.Process(), "process") }

func as[T any](c *spec.C, x any, what string) T {
	t, ok := x.(T)
	if !ok {
		c.Errorf("the target's %s is no %T", what, new(T))
	}
	return t
}
