package verbs

// CounterReader is implemented by testbeds that can read the counters of a host's first
// device ("counters"): those of ports in /sys/class/infiniband (hw_counters) and of ethtool -S,
// by their names there. A counter that a device lacks is missing. Reading costs the
// running programs no time.
type CounterReader interface {
	HardwareCounters(t Thread, host int) (map[string]uint64, error)
}
