package calibrate

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rdmasim/rdmasim/experiment"
	"github.com/rdmasim/rdmasim/internal/cli/outfile"
)

// runCache keeps what runs gave, by their content: in memory, and if it has a file there too, so
// that a fit that was interrupted goes on where it was.
type runCache struct {
	mu    sync.Mutex
	known map[string]map[string]float64
	log   *outfile.Log // nil: memory only
	lost  error        // the first result that the file did not take: those behind it are in memory only
}

// cachedRun is a line of the file.
type cachedRun struct {
	Key     string             `json:"key"`
	Metrics map[string]float64 `json:"metrics"`
}

// openRunCache opens the cache in a folder, which is made if it is not there; "" is memory only.
// Another build of the program has a file of its own, since the simulator may have changed; files
// of other builds are removed.
func openRunCache(ctx context.Context, dir string) (*runCache, error) {
	c := &runCache{known: map[string]map[string]float64{}}
	if dir == "" {
		return c, nil
	}
	build, err := buildHash()
	if err != nil {
		return nil, fmt.Errorf("--cache: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, experiment.Usagef("--cache: %w", err)
	}
	name := "runs-" + build + ".jsonl"
	removeOtherBuilds(ctx, dir, name)
	if c.log, err = outfile.OpenLog(ctx, filepath.Join(dir, name)); err != nil {
		return nil, experiment.Usagef("--cache: %w", err)
	}
	return c, c.read()
}

// removeOtherBuilds removes what other builds left, unless they use it now: it would never be read
// again.
func removeOtherBuilds(ctx context.Context, dir, keep string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // opening the file says what is wrong
	}
	for _, e := range entries {
		if n := e.Name(); n != keep && strings.HasPrefix(n, "runs-") && strings.HasSuffix(n, ".jsonl") {
			if old, err := outfile.OpenLog(ctx, filepath.Join(dir, n)); err == nil {
				_ = old.Remove()
			}
		}
	}
}

// read takes the lines of the file. A line that is none ends in the middle, since a program was
// killed there: it is run again.
func (c *runCache) read() error {
	r := bufio.NewReader(c.log.Reader())
	for {
		line, err := r.ReadBytes('\n')
		var e cachedRun
		if len(bytes.TrimSpace(line)) > 0 && json.Unmarshal(line, &e) == nil && e.Key != "" && e.Metrics != nil {
			c.known[e.Key] = e.Metrics
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("--cache: %w", err)
		}
	}
}

func (c *runCache) get(key string) (map[string]float64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.known[key]
	return m, ok
}

// put keeps a result. Numbers that JSON cannot have stay in memory, and so does all behind a line
// that the file did not take.
func (c *runCache) put(key string, m map[string]float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[key] = m
	if c.log == nil {
		return
	}
	line, err := json.Marshal(cachedRun{key, m})
	if err != nil {
		return
	}
	c.lost = cmp.Or(c.lost, c.log.Append(append(line, '\n'), false))
}

// unkept is why results are not in the file, if some are not: an error of a command whose answer is
// there.
func (c *runCache) unkept() error {
	if c.lost != nil {
		return fmt.Errorf("--cache: %w: the next calibration runs again what is not there", c.lost)
	}
	return nil
}

// close ends the file; what is in it stays.
func (c *runCache) close() {
	if c.log != nil {
		c.log.Close()
	}
}

// buildHash identifies the program that runs: the simulator and all data that it carries.
var buildHash = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
})
