package harness

import "time"

// FullMachine is a machine without free memory, where one worker runs already; ended is its end.
func FullMachine(dir string) (m *Memory, ended func(), err error) {
	m = &Memory{dir: dir, wait: time.Millisecond, available: func() uint64 { return 0 }, rss: func(int) uint64 { return 0 },
		lockWait: time.Hour}
	r, _, err := m.try(false)
	return m, r.release, err
}
