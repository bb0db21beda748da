//go:build linux && amd64

package exec

import (
	"errors"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rdmasim/rdmasim/attach/network"
	"github.com/rdmasim/rdmasim/roce"
	"github.com/rdmasim/rdmasim/verbs"
	"github.com/rdmasim/rdmasim/verbs/remotewire"
)

// wireArg makes the test binary a program that disturbs the wire of its session while a shell runs
// a script, or without one takes a link down.
const wireArg = "exec-wire"

// testWire drops the third request of what the script sends and records what is sent.
func testWire(args []string) int {
	err := func() error {
		if len(args) == 0 {
			return testLink()
		}
		c, err := net.Dial("unix", os.Getenv(remotewire.SocketEnv))
		if err != nil {
			return err
		}
		w, err := remotewire.New(c, []uint64{network.Identity(0).GUID, network.Identity(1).GUID})
		if err != nil {
			return err
		}
		drop := verbs.WireRule{Match: verbs.WireMatchDirection, Action: verbs.WireDrop, Skip: 2, Count: 1}
		if err := errors.Join(w.StartTap(nil), w.Inject(nil, drop)); err != nil {
			return err
		}
		script := osexec.Command("sh", "-c", args[0])
		script.Stdout, script.Stderr = os.Stdout, os.Stderr
		if err := script.Run(); err != nil {
			return err
		}
		frames, err := w.StopTap(nil)
		if err != nil {
			return err
		}
		sends, dropped := 0, 0
		for _, f := range frames {
			p, err := roce.Parse(f.Data)
			if err != nil || !p.ICRCOK() {
				return fmt.Errorf("frame %x: %w", f.Data, err)
			}
			if p.Op == roce.RCSendOnly {
				sends++
			}
			if f.Acted == verbs.WireDrop {
				dropped++
			}
		}
		met, err := w.ClearRules(nil)
		fmt.Printf("sends %d, dropped %d, met %v\n", sends, dropped, met)
		return errors.Join(err, w.Close())
	}()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// TestWire: a program of the session records and disturbs what libmlx5 of other programs has the
// devices send.
func TestWire(t *testing.T) {
	canListen(t)
	needs(t, "ibv_rc_pingpong")
	each(t, func(t *testing.T, u user) {
		p := port(t)
		script := fmt.Sprintf(`ibv_rc_pingpong -g 0 -s 512 -n 10 -d mlx5_0 -p %d & s=$!; %s; ibv_rc_pingpong -g 0 -s 512 -n 10 -d mlx5_1 -p %[1]d 127.0.0.1; wait`, p, listens(p))
		out, status := u.session(t, "-devices", "2", "--", "/proc/self/exe", wireArg, script)
		if status != 0 || !strings.Contains(out, "sends 21, dropped 1, met [") {
			t.Fatalf("status %d, want 10 messages each way and one of them again:\n%s", status, out)
		}
	})
}

// testLink takes the first device's link down and up and looks at its file until that says so.
func testLink() error {
	c, err := net.Dial("unix", os.Getenv(remotewire.SocketEnv))
	if err != nil {
		return err
	}
	w, err := remotewire.New(c, []uint64{network.Identity(0).GUID})
	if err != nil {
		return err
	}
	for _, state := range []string{"1: DOWN", "4: ACTIVE", "1: DOWN"} {
		if err := w.SetLink(nil, 0, 1, state == "4: ACTIVE"); err != nil {
			return err
		}
		if err := awaitState(state); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return awaitState("4: ACTIVE") // as before the tester came
}

func awaitState(want string) error {
	var got string
	for end := time.Now().Add(soon); time.Now().Before(end); time.Sleep(time.Millisecond) {
		b, err := os.ReadFile("/sys/class/infiniband/mlx5_0/ports/1/state")
		if err != nil {
			return err
		}
		if got = strings.TrimSpace(string(b)); got == want {
			return nil
		}
	}
	return fmt.Errorf("the state of the port is %q, want %q", got, want)
}

// TestLinkInFiles: the files of a port say what has become of its link.
func TestLinkInFiles(t *testing.T) {
	canListen(t)
	each(t, func(t *testing.T, u user) {
		for _, flags := range u.sessions(nil, []string{"-path-calls"}, []string{"-profile", "connectx-5-ib", "-devices", "2"}) {
			if out, status := u.session(t, append(flags, "--", "/proc/self/exe", wireArg)...); status != 0 {
				t.Errorf("%v: status %d:\n%s", flags, status, out)
			}
		}
	})
}

// TestWireIsPrivate: a wire of one session is not that of another user's, and nothing of it stays.
func TestWireIsPrivate(t *testing.T) {
	canListen(t)
	each(t, func(t *testing.T, u user) {
		out, status := u.session(t, "--", "sh", "-c", `stat -c "%a %F %u" "$`+remotewire.SocketEnv+`"; echo "$`+remotewire.SocketEnv+`"`)
		mode, path, _ := strings.Cut(strings.TrimSpace(out), "\n")
		if want := fmt.Sprintf("600 socket %d", u.id); status != 0 || mode != want {
			t.Fatalf("status %d: %q, want %q", status, out, want)
		}
		path, _, _ = strings.Cut(path, "\n")
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s after the session: %v", path, err)
		}
	})
}

// TestWireOfALongFolder: where a socket has no room in the temporary folder a session does without
// the wire.
func TestWireOfALongFolder(t *testing.T) {
	canListen(t)
	dir := shared(t) + "/" + strings.Repeat("x", 90)
	if err := errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	out, status := users()[0].session(t, "-v", "--", "sh", "-c", "echo [$"+remotewire.SocketEnv+"]")
	if status != 0 || !strings.Contains(out, "[]") || !strings.Contains(out, "no access to the wire") {
		t.Errorf("status %d:\n%s", status, out)
	}
}
