//go:build linux && amd64

package exec

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Where fields stand in /proc/PID/stat, after the name of the program: state, parent, number of
// threads, start (proc_pid_stat(5)).
const (
	statState   = 0
	statParent  = 1
	statThreads = 17
	statStart   = 19
)

// procEntry is one of /proc. Its number may be another one's later, and then its start differs.
type procEntry struct {
	parent int
	start  string // in clock ticks since the machine was started
}

// processTree is all processes that have not ended, by their numbers. Everybody may see so much of
// each.
func processTree() map[int]procEntry {
	tree := map[int]procEntry{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		b, err := os.ReadFile(d + "/stat")
		if err != nil {
			continue
		}
		// "pid (name) state ppid ...": the name may hold anything.
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil || len(f) <= statStart {
			continue
		}
		// A process without its main thread is a zombie, too, and goes on with its other threads.
		if n, err := strconv.Atoi(f[statThreads]); f[statState] == "Z" && err == nil && n <= 1 {
			continue
		}
		parent, _ := strconv.Atoi(f[statParent])
		tree[pid] = procEntry{parent, f[statStart]}
	}
	return tree
}

// descendants lists the processes below root, without except and those below it.
func descendants(root, except int) []int {
	return below(processTree(), except, func(pid int, _ procEntry) bool { return pid == root })
}

// below lists the processes of a tree of which a parent, or one of its parents, is a root, without
// except and those below it.
func below(tree map[int]procEntry, except int, root func(int, procEntry) bool) (l []int) {
	for pid := range tree {
		for p, n := pid, 0; p > 1 && n < 1000 && p != except; n++ {
			p = tree[p].parent
			if root(p, tree[p]) {
				l = append(l, pid)
				break
			}
		}
	}
	return l
}
