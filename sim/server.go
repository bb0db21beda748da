package sim

// Server serves one customer at a time, first come first served: a link, a bus, a
// processing unit. The zero value is free.
type Server struct {
	free Time
	// Busy is the total time served, and Served the number of customers.
	Busy   Time
	Served uint64
}

// Take reserves the server for d starting not before t, and returns when the
// service starts and ends.
func (s *Server) Take(t, d Time) (start, end Time) {
	start = max(t, s.free)
	end = start + d
	s.free = end
	s.Busy += d
	s.Served++
	return start, end
}

// Hold keeps the server from beginning anything new before t.
func (s *Server) Hold(t Time) { s.free = max(s.free, t) }

// FreeAt is when the last reservation ends.
func (s *Server) FreeAt() Time { return s.free }
