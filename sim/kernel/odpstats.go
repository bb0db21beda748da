package kernel

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/sim"
	"github.com/rdmasim/rdmasim/verbs"
)

// PagingStats holds the counters of a region, as `rdma statistic show mr` shows them.
type PagingStats struct {
	Faults        uint64 // pages that handlers of faults made present, those that were included
	Invalidations uint64 // pages taken away, by the rule of zapRange
	Prefetch      uint64 // pages of ranges that were prefetched
	// FaultsHandled and InvalidationsHandled count operations, since 6.14.
	FaultsHandled, InvalidationsHandled uint64
}

// PagingCounters holds the on-demand paging counters of a device, by the names that they had in
// 2014 (files of uverbsN, and of debugfs).
type PagingCounters struct {
	Faults            uint64 // num_page_faults
	FaultPages        uint64 // num_page_fault_pages
	Invalidations     uint64 // num_invalidations
	InvalidationPages uint64 // num_invalidation_pages
	Contentions       uint64 // invalidations_faults_contentions: looks for pages that an invalidation overtook
	PrefetchesHandled uint64 // num_prefetches_handled
	PrefetchPages     uint64 // num_prefetch_pages
	FailedResolutions uint64 // num_failed_resolutions
	UnknownKeys       uint64 // num_mrs_not_found
	RegionPages       uint64 // num_odp_mr_pages
	Regions           uint64 // num_odp_mrs
	OrphanQueueFaults uint64 // of queues that are gone; nobody resumes them
}

// Fields calls f with the name and the address of each counter.
func (c *PagingCounters) Fields(f func(name string, p *uint64)) {
	f("num_page_faults", &c.Faults)
	f("num_page_fault_pages", &c.FaultPages)
	f("num_invalidations", &c.Invalidations)
	f("num_invalidation_pages", &c.InvalidationPages)
	f("invalidations_faults_contentions", &c.Contentions)
	f("num_prefetches_handled", &c.PrefetchesHandled)
	f("num_prefetch_pages", &c.PrefetchPages)
	f("num_failed_resolutions", &c.FailedResolutions)
	f("num_mrs_not_found", &c.UnknownKeys)
	f("num_odp_mr_pages", &c.RegionPages)
	f("num_odp_mrs", &c.Regions)
}

// PagingTimes holds the time that the driver spent on page faults, and processes on invalidations:
// finding the pages, changing the device's translations, waiting for the command interface before
// the answer; and taking pages away.
type PagingTimes struct{ Find, Update, Wait, Invalidate sim.Time }

// Fields calls f with each time, under a name that says that only a simulator has it.
func (c *PagingTimes) Fields(f func(name string, v uint64)) {
	f("sim_fault_find_ps", uint64(c.Find))
	f("sim_fault_update_ps", uint64(c.Update))
	f("sim_fault_wait_ps", uint64(c.Wait))
	f("sim_invalidate_ps", uint64(c.Invalidate))
}

// lap adds the time since start to a stage of the fault that the call handles, if it handles one,
// and begins the next.
func (k *call) lap(stage *sim.Time, start *sim.Time) {
	if k.c.P == nil {
		return
	}
	now := k.c.P.Now()
	if k.handles {
		*stage += now - *start
	}
	*start = now
}

// clock is when the call is.
func (k *call) clock() sim.Time {
	if k.c.P == nil {
		return 0
	}
	return k.c.P.Now()
}

// MRCounters is RDMA_NLDEV_CMD_STAT_GET for a region (fill_stat_mr_entry): it returns the counters
// that this kernel has; none for a region whose memory is pinned, and none before 5.5.
func (u *Ucontext) MRCounters(c Caller, h Handle) (all []verbs.NamedCounter, err error) {
	u.dev.enter(c, false)
	if err := u.usable(); err != nil {
		return nil, err
	}
	m, err := lookup[*mr](&u.objs, h, "MR")
	if err != nil {
		return nil, fmt.Errorf("counters: %w", err)
	}
	return m.counters()
}

// counters are those of MRCounters.
func (m *mr) counters() (all []verbs.NamedCounter, err error) {
	if m.odp == nil || m.odp.buf != nil {
		return nil, nil
	}
	s, add := &m.paging.stats, func(name string, v uint64) { all = append(all, verbs.NamedCounter{Name: name, Value: v}) }
	switch m.u.dev.p.Paging {
	case Paging5_0:
		return nil, fmt.Errorf("counters of regions: %w", syscall.EOPNOTSUPP)
	case Paging6_14:
		add("page_faults", s.Faults)
		add("page_faults_handled", s.FaultsHandled)
		add("page_invalidations", s.Invalidations)
		add("page_invalidations_handled", s.InvalidationsHandled)
		add("page_prefetch", s.Prefetch)
	default:
		add("page_faults", s.Faults)
		add("page_invalidations", s.Invalidations)
		add("page_prefetch", s.Prefetch)
	}
	return all, nil
}

// AddPaging adds the counters of on-demand paging to a map by their names, if the device has ever
// paged.
func (d *Device) AddPaging(to map[string]uint64) {
	if c := d.Counters().Paging; c != (PagingCounters{}) {
		c.Fields(func(name string, p *uint64) { to[name] = *p })
	}
}
