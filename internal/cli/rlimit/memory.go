package rlimit

import (
	"bufio"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// Available is how much memory processes of this control group can take before the kernel ends
// some, in bytes: MemAvailable of /proc/meminfo, or less where a control group has a limit. Page
// cache that is not in use counts as free.
func Available(root fs.FS) uint64 {
	free := uint64(math.MaxUint64)
	if kib, ok := field(root, "proc/meminfo", "MemAvailable:"); ok {
		free = kib << 10
	}
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return free
	}
	for line := range strings.Lines(string(groups)) {
		// "0::/path" of version 2, "4:memory:/path" of version 1 (cgroups(7)).
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch {
		case parts[0] == "0":
			free = min(free, room(root, "sys/fs/cgroup", parts[2], "memory.max", "memory.current", "inactive_file"))
		case strings.Contains(","+parts[1]+",", ",memory,"):
			free = min(free, room(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))
		}
	}
	return free
}

// room is what the limits of a control group and those above it leave.
func room(root fs.FS, mount, group, limit, usage, cache string) uint64 {
	free := uint64(math.MaxUint64)
	for {
		dir := path.Join(mount, group)
		most, ok1 := number(root, path.Join(dir, limit))
		used, ok2 := number(root, path.Join(dir, usage))
		if ok1 && ok2 { // "max" is no number
			if idle, ok := field(root, path.Join(dir, "memory.stat"), cache); ok {
				used -= min(used, idle)
			}
			free = min(free, most-min(most, used))
		}
		if group == "/" || group == "." || group == "" {
			return free
		}
		group = path.Dir(group)
	}
}

func number(root fs.FS, name string) (uint64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// field is the number behind a name at the beginning of a line.
func field(root fs.FS, name, key string) (uint64, bool) {
	f, err := root.Open(name)
	if err != nil {
		return 0, false
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) >= 2 && words[0] == key {
			n, err := strconv.ParseUint(words[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
