//go:build linux && amd64

package exec

import (
	"strings"
	"testing"
)

// TestProgramsWithoutRDMA: a program that neither uses the devices nor reads their files is named,
// and others are not.
func TestProgramsWithoutRDMA(t *testing.T) {
	canListen(t)
	each(t, func(t *testing.T, u user) {
		for script, named := range map[string]bool{
			"cat /sys/devices/system/cpu/online; ls /sys/class/net; cat /sys/class/infiniband/absent": true,
			"cat /sys/class/infiniband/mlx5_0/device/vendor":                                          false, "ls /sys/class/infiniband": false,
		} {
			if out, _ := u.session(t, "--", "sh", "-c", script); strings.Contains(out, "made no RDMA call") != named {
				t.Errorf("%s: want the program named: %v:\n%s", script, named, out)
			}
		}
	})
}

// TestReasonsAreSaidOnce: what a library tries is no refusal, and the same refusal is said once.
func TestReasonsAreSaidOnce(t *testing.T) {
	canListen(t)
	needs(t, "ibv_devinfo")
	out, status := users()[0].session(t, "-v", "-profile", "connectx-5-ib", "--", "sh", "-c", "ibv_devinfo -v >/dev/null; '"+compile(t, "refused")+"'")
	var reasons []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "uverbs:") || strings.HasPrefix(line, "rdma_cm:") {
			reasons = append(reasons, line)
		}
	}
	if status != 0 || len(reasons) != 1 || !strings.Contains(reasons[0], "raw packet") {
		t.Errorf("status %d, want one reason: %q\n%s", status, reasons, out)
	}
}
