//go:build linux && amd64

package exec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDevices(t *testing.T) {
	needs(t, "ibv_devices")
	each(t, func(t *testing.T, u user) {
		for n, want := range map[string][]string{"1": {"mlx5_0"}, "3": {"mlx5_0", "mlx5_1", "mlx5_2"}} {
			out, status := u.session(t, "-devices", n, "--", "ibv_devices")
			if status != 0 || strings.Count(out, "mlx5_") != len(want) {
				t.Errorf("status %d, want %v:\n%s", status, want, out)
			}
			for _, d := range want {
				if !strings.Contains(out, d) {
					t.Errorf("%s is not listed:\n%s", d, out)
				}
			}
		}
	})
}

func TestDevinfo(t *testing.T) {
	needs(t, "ibv_devinfo")
	each(t, func(t *testing.T, u user) {
		out, status := u.session(t, "--", "ibv_devinfo", "-v")
		if status != 0 {
			t.Fatalf("status %d:\n%s", status, out)
		}
		for _, want := range []string{"PORT_ACTIVE", "Ethernet", "vendor_id:\t\t\t0x02c9", "RoCE v2"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in:\n%s", want, out)
			}
		}
	})
}

func TestPingpong(t *testing.T) {
	needs(t, "ibv_rc_pingpong")
	each(t, func(t *testing.T, u user) {
		kinds := []string{"-c", "-e", "", "-s 65536 -n 20"}
		if testing.Short() {
			kinds = []string{"-c -e"}
		}
		for i, flags := range kinds {
			if !u.runs(i, 2) {
				continue
			}
			t.Run("one device "+flags, func(t *testing.T) {
				cmd := "ibv_rc_pingpong -g 0 -n 50 " + flags
				u.pair(t, nil, cmd, cmd)
			})
			t.Run("two devices "+flags, func(t *testing.T) {
				cmd := "ibv_rc_pingpong -g 0 -n 50 " + flags
				u.pair(t, []string{"-devices", "2"}, cmd+" -d mlx5_0", cmd+" -d mlx5_1")
			})
			t.Run("copied queues "+flags, func(t *testing.T) {
				cmd := "ibv_rc_pingpong -g 0 -n 50 " + flags
				u.pair(t, []string{"-copy-queues"}, cmd, cmd)
			})
		}
	})
}

// TestOtherPingpongs runs the transports and queues that ibv_rc_pingpong does not have,
// polling and waiting for events, and completions with time stamps.
func TestOtherPingpongs(t *testing.T) {
	if testing.Short() {
		t.Skip("runs many sessions")
	}
	needs(t, "ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong", "ibv_rc_pingpong")
	each(t, func(t *testing.T, u user) {
		for i, cmd := range []string{
			"ibv_uc_pingpong -g 0 -n 50", "ibv_ud_pingpong -g 0 -n 50 -e", "ibv_srq_pingpong -g 0 -n 50 -e", "ibv_rc_pingpong -g 0 -n 50 -t",
			"ibv_rc_pingpong -g 0 -n 50 -c -o -P", "ibv_rc_pingpong -g 0 -n 50 -c -e -O -P",
			"ibv_uc_pingpong -g 0 -n 50 -e", "ibv_ud_pingpong -g 0 -n 50", "ibv_srq_pingpong -g 0 -n 50",
			"ibv_rc_pingpong -g 0 -n 50 -c -o", "ibv_rc_pingpong -g 0 -n 50 -c -O",
		} {
			if !u.runs(i, 6) {
				continue
			}
			t.Run(cmd, func(t *testing.T) { u.pair(t, nil, cmd, cmd) })
		}
		t.Run("two devices", func(t *testing.T) {
			cmd := "ibv_ud_pingpong -g 0 -n 50 -e -d mlx5_"
			u.pair(t, []string{"-devices", "2"}, cmd+"0", cmd+"1")
		})
	})
}

// TestXRC runs programs of two processes whose queue pairs share receive queues by XRC.
func TestXRC(t *testing.T) {
	needs(t, "ibv_xsrq_pingpong", "ib_send_bw", "ib_write_bw", "ib_read_lat", "ib_atomic_bw")
	each(t, func(t *testing.T, u user) {
		for i, cmd := range []string{
			"ibv_xsrq_pingpong -g 0 -n 50", "ib_send_bw -F -c XRC -n 100 -x 3 -q 2",
			"ibv_xsrq_pingpong -g 0 -n 50 -e", "ib_write_bw -F -c XRC -n 100 -x 3", "ib_read_lat -F -c XRC -n 100 -x 3", "ib_atomic_bw -F -c XRC -n 100 -x 3",
		} {
			if !u.runs(i, 2) {
				continue
			}
			t.Run(cmd, func(t *testing.T) {
				defer removeDomains(t)
				u.pair(t, nil, cmd, cmd)
			})
		}
		t.Run("two devices, dynamic registers", func(t *testing.T) {
			cmd := "ibv_xsrq_pingpong -g 0 -n 50 -d mlx5_"
			u.pair(t, []string{"-devices", "2", "-static"}, cmd+"0", cmd+"1")
		})
		if !u.runs(1, 2) {
			return
		}
		t.Run("InfiniBand", func(t *testing.T) {
			cmd := "ibv_xsrq_pingpong -n 50 -d mlx5_"
			u.pair(t, []string{"-profile", "connectx-5-ib", "-devices", "2"}, cmd+"0", cmd+"1")
		})
	})
}

// removeDomains removes the files that perftest leaves, which another user could not open.
func removeDomains(t *testing.T) {
	t.Helper()
	for _, name := range []string{"/tmp/xrc_domain_server", "/tmp/xrc_domain_client"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("perftest keeps its XRC domains there: %v", err)
		}
	}
}

// TestInfiniBand runs programs that address by LID, and by GID, on a device whose port
// is InfiniBand.
func TestInfiniBand(t *testing.T) {
	needs(t, "ibv_rc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong")
	each(t, func(t *testing.T, u user) {
		for i, cmd := range []string{"ibv_rc_pingpong -n 50", "ibv_ud_pingpong -g 0 -n 50 -e", "ibv_ud_pingpong -n 50", "ibv_rc_pingpong -g 0 -n 50", "ibv_srq_pingpong -n 50"} {
			if !u.runs(i, 2) {
				continue
			}
			t.Run(cmd, func(t *testing.T) {
				u.pair(t, []string{"-profile", "connectx-5-ib", "-devices", "2"}, cmd+" -d mlx5_0", cmd+" -d mlx5_1")
			})
		}
	})
}

// TestRawEthernet sends raw packets over the cable. Who may have none sees a program that cannot do
// without refused.
func TestRawEthernet(t *testing.T) {
	needs(t, "raw_ethernet_bw")
	// A client that comes before the server listens is not heard, so that another one follows it.
	const run = "raw_ethernet_bw -F -n 200 -s 1024 -d %s --%s --source_mac 02:02:c9:00:01:0%d --dest_mac 02:02:c9:00:01:0%d"
	server, client := fmt.Sprintf(run, "mlx5_0", "server", 1, 2), fmt.Sprintf(run, "mlx5_1", "client", 2, 1)
	each(t, func(t *testing.T, u user) {
		if u.id != 0 {
			out, status := u.session(t, append([]string{"--"}, strings.Fields(server)...)...)
			if status != 1 || !strings.Contains(out, "Unable to create QP") {
				t.Errorf("status %d:\n%s", status, out)
			}
			return
		}
		out, status := u.session(t, "-devices", "2", "--", "sh", "-c", server+" >/dev/null 2>&1 & s=$!; sleep 0.5; while kill -0 $s 2>/dev/null; do "+client+" || exit 1; done; wait $s")
		if status != 0 || !strings.Contains(out, "1024       200") {
			t.Errorf("status %d:\n%s", status, out)
		}
	})
}

// TestRegisters runs queue pairs that share registers, on both kinds of registers, and
// looks at what was stored there.
func TestRegisters(t *testing.T) {
	needs(t, "ib_write_bw", "ibv_rc_pingpong")
	each(t, func(t *testing.T, u user) {
		kinds := [][]string{{"-static", "-copy-queues"}, {}, {"-static"}, {"-copy-queues"}}
		if testing.Short() {
			kinds = kinds[:1]
		}
		for i, flags := range kinds {
			if !u.runs(i, 2) {
				continue
			}
			t.Run(strings.Join(flags, " "), func(t *testing.T) {
				u.pair(t, flags, "ib_write_bw -F -q 8 -n 50", "ib_write_bw -F -q 8 -n 50")
				for _, c := range []struct {
					env, kind string
				}{{"", "blueflame"}, {"MLX5_SHUT_UP_BF=1 ", "doorbell"}} {
					log := filepath.Join(shared(t), "log")
					cmd := c.env + "ibv_rc_pingpong -g 0 -c -n 50"
					u.pair(t, append(slices.Clip(flags), "-uar-log", log), cmd, cmd)
					b, err := os.ReadFile(log)
					if err != nil {
						t.Fatal(err)
					}
					// Each post of a ping-pong is answered before the next: none is overwritten.
					if n := strings.Count(string(b), " "+c.kind+" "); n != 100 {
						t.Errorf("%s: %d times %s, want 50 of each side:\n%s", cmd, n, c.kind, b)
					}
				}
			})
		}
	})
}

// TestQueueMemory looks at where queues are reached, with and without sharing, and
// where the user has said where they are.
func TestQueueMemory(t *testing.T) {
	needs(t, "ibv_rc_pingpong")
	each(t, func(t *testing.T, u user) {
		for i, c := range []struct {
			flags  []string
			env    string
			shared int
		}{
			{nil, "", 4}, {[]string{"-static"}, "", 4}, {[]string{"-copy-queues"}, "", 0},
			{nil, "MLX_QP_ALLOC_TYPE=ANON MLX_CQ_ALLOC_TYPE=ANON ", 0}, {nil, "MLX_CQ_ALLOC_TYPE=ANON ", 2},
			{nil, "MLX_QP_ALLOC_TYPE=CONTIG ", 4}, {nil, "RDMAV_FORK_SAFE=1 ", 4},
			{[]string{"-copy-queues"}, "MLX_QP_ALLOC_TYPE=PREFER_CONTIG ", 0},
		} {
			if !u.runs(i, 8) {
				continue
			}
			cmd := c.env + "ibv_rc_pingpong -g 0 -c -n 10"
			out := u.pair(t, append([]string{"-v"}, c.flags...), cmd, cmd)
			if want := fmt.Sprintf("%d queues in shared memory, %d copied", c.shared, 4-c.shared); !strings.Contains(out, want) {
				t.Errorf("%v %s: want %s:\n%s", c.flags, cmd, want, out)
			}
		}
	})
}

// TestPerftest runs each program: several queue pairs, both directions, and a message of many
// packets, waiting for events, datagrams, shared receive queues, multicast and on-demand paging. An
// ordinary user runs four; with -perftest.all all have all flags.
func TestPerftest(t *testing.T) {
	each(t, func(t *testing.T, u user) {
		for _, c := range []struct {
			program string
			kept    int // of flags, the first ones (user.runs)
			flags   []string
		}{
			{"ib_write_bw", 4, []string{"-n 100", "-q 8 -n 50", "-b -n 100", "-s 262144 -n 5", "-a -n 5"}},
			{"ib_read_bw", 1, []string{"-n 100", "-q 8 -n 50", "-b -n 100", "-a -n 5"}},
			{"ib_send_bw", 2, []string{"-n 100", "-e -n 100", "-q 8 -n 50", "-b -n 100", "-a -n 5"}},
			{"ib_atomic_bw", 1, []string{"-n 100", "-q 8 -n 50", "-b -n 100"}},
			{"ib_write_lat", 1, []string{"-n 100", "-a -n 5"}},
			{"ib_read_lat", 1, []string{"-n 100", "-a -n 5"}},
			{"ib_send_lat", 2, []string{"-n 100", "-e -n 100", "-a -n 5"}},
			{"ib_atomic_lat", 1, []string{"-n 100"}},
			{"ib_send_bw", 3, []string{"-c UD -n 100", "--use-srq -n 100", "-c UD -g -x 1 -n 100", "-c UD -e -n 100", "-c UC -n 100", "-c UD --use-srq -n 100"}},
			{"ib_send_lat", 1, []string{"-c UD -n 100", "--use-srq -e -n 100", "-c UD -g -x 1 -n 100", "-c UD -e -n 100", "-c UC -n 100"}},
			{"ib_write_bw", 1, []string{"-c UC -n 100", "-c UC -q 8 -b -n 50"}},
			{"ib_write_lat", 0, []string{"-c UC -n 100"}},
			{"ib_read_bw", 0, []string{"-e -n 100"}},
			{"ib_write_bw", 1, []string{"--odp -n 100", "--odp -b -q 4 -n 50"}},
			{"ib_send_bw", 1, []string{"--odp -n 100"}},
			{"ib_read_bw", 0, []string{"--odp -n 100"}},
		} {
			for i, flags := range c.flags {
				if testing.Short() && !strings.Contains(flags, "-e") || !u.runs(i, c.kept) {
					continue
				}
				if int(u.id) != os.Geteuid() && c.kept < 2 && !*perftestAll {
					continue
				}
				t.Run(c.program+" "+flags, func(t *testing.T) {
					needs(t, c.program)
					cmd := c.program + " -F -d mlx5_0 " + flags
					u.pair(t, nil, cmd, cmd)
					if i == 0 && u.runs(1, c.kept) {
						u.pair(t, []string{"-copy-queues"}, cmd, cmd)
					}
				})
			}
		}
	})
}
