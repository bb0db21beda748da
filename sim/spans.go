package sim

// Spans collects a timeline. A nil *Spans records nothing, so a unit writes
//
//	if e.Spans != nil { e.Spans.Span(track, "fetch", start, end) }
//
// and pays one comparison when no timeline is asked for.
type Spans struct {
	tracks []string
	spans  []span
}

type span struct {
	track      int32
	name       string
	start, end Time
	arg        uint64
}

// Track names a line of the timeline ("host0/core 3", "mlx5_0/PU 2") and returns
// its number.
func (s *Spans) Track(name string) int32 {
	s.tracks = append(s.tracks, name)
	return int32(len(s.tracks) - 1)
}

// Span records that track did name from start to end; arg is shown with it.
func (s *Spans) Span(track int32, name string, start, end Time, arg uint64) {
	s.spans = append(s.spans, span{track, name, start, end, arg})
}
