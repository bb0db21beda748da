package sweep

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/rdmasim/rdmasim/experiment/sweep/store"
)

// job is the first line that a worker reads.
type job struct {
	Plan   *Plan  `json:"plan"`
	Store  string `json:"store"`
	Model  string `json:"model"`  // of the supervisor: a worker of another version is refused
	Memory uint64 `json:"memory"` // bytes that the worker may take; 0: no limit
}

// order asks a worker for one run.
type order struct {
	Point int `json:"point"`
}

// reply is what it answers.
type reply struct {
	Point   int    `json:"point"` // -1: the worker is ready
	Address string `json:"address,omitempty"`
	Cached  bool   `json:"cached,omitempty"` // it was there
	Error   string `json:"error,omitempty"`
	// Fatal says that no other run will do better: the store takes nothing, or the plan is none.
	Fatal bool `json:"fatal,omitempty"`
}

// WorkerCommand is the argument that makes the program a worker.
const WorkerCommand = "sweep-worker"

// Work is a worker process: it carries out a job and the orders that follow from in, and answers
// each on out.
func Work(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewReaderSize(in, 1<<20)
	answers := json.NewEncoder(out)
	w, err := newWorker(lines)
	if err != nil {
		return answers.Encode(reply{Point: -1, Error: err.Error(), Fatal: true})
	}
	if err := answers.Encode(reply{Point: -1}); err != nil {
		return err
	}
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		var o order
		if err == nil {
			err = json.Unmarshal(line, &o)
		}
		if err != nil {
			return err
		}
		if err := answers.Encode(w.run(ctx, o.Point)); err != nil {
			return err
		}
	}
}

type worker struct {
	*prepared
	store *store.Store
}

func newWorker(lines *bufio.Reader) (*worker, error) {
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	var j job
	if err := json.Unmarshal(line, &j); err != nil {
		return nil, err
	}
	limitMemory(j.Memory)
	w := &worker{}
	if w.prepared, err = j.Plan.prepare(); err != nil {
		return nil, err
	}
	if j.Model != "" && w.model != j.Model {
		return nil, fmt.Errorf("the worker is another program than the one that started it (%s and %s): was it built again meanwhile?", w.model, j.Model)
	}
	w.store, err = store.Open(j.Store, w.model)
	return w, err
}

// stacks is what a worker takes besides its heap: the program itself and the stacks of its threads.
const stacks = 64 << 20

// limitMemory bounds the memory of this process: its garbage is collected to stay below, and if
// that is not enough the process ends with an error of its own instead of taking the memory of
// others.
func limitMemory(bytes uint64) {
	runtime.GOMAXPROCS(1) // a run is one thread; others would only compete with those of other workers
	if bytes == 0 {
		return
	}
	debug.SetGCPercent(400) // a heap that is small is not worth the time
	debug.SetMemoryLimit(int64(bytes - bytes/8))
	limit := unix.Rlimit{Cur: bytes + stacks, Max: bytes + stacks}
	_ = unix.Setrlimit(unix.RLIMIT_DATA, &limit) // a lower limit of the user's stays
}

func (w *worker) run(ctx context.Context, i int) reply {
	at, id, err := w.address(i)
	if err != nil {
		return reply{Point: i, Error: err.Error()}
	}
	r := reply{Point: i, Address: at.String()}
	if there, err := known(w.store, at); err != nil {
		r.Error, r.Fatal = "the store cannot be read: "+err.Error(), true
		return r
	} else if there {
		r.Cached = true
		return r
	}
	pt, seed := w.point(i)
	res, err := w.prep.Run(ctx, pt, seed, w.pointName(i))
	if err != nil {
		r.Error = err.Error()
		return r
	}
	text, err := encode(res, id, w.prep.Command(pt, seed, w.file()))
	if err != nil {
		r.Error = err.Error()
		return r
	}
	if err := w.store.Put(at, text); err != nil {
		r.Error, r.Fatal = "its result cannot be kept: "+err.Error(), true
	}
	return r
}

// file is the path of the scenario; "" of a named experiment.
func (r *prepared) file() string {
	if r.Scenario == nil {
		return ""
	}
	return r.Name
}

// command is the command line of a run, for messages.
func (r *prepared) command(i int) string {
	pt, seed := r.point(i)
	return shellLine(r.prep.Command(pt, seed, r.file()))
}
