package conformance

import "strings"

// kindsOfSource are the kinds that the head of the catalogue explains, in words around the place.
var kindsOfSource = map[string][2]string{
	"man": {"rdma-core's manual page ", ""},
	"dv":  {"rdma-core's manual page ", " (mlx5 direct verbs)"},
	"lib": {"libibverbs/", " of rdma-core"},
	"p":   {"providers/", " of rdma-core"},
	"t":   {"tests/", " of rdma-core"},
	"k":   {"drivers/infiniband/", " of Linux"},
}

// SourceWords are the sources of an entry, in words.
func (e Entry) SourceWords() []string {
	var out []string
	for _, s := range e.Sources {
		kind, place, ok := strings.Cut(s, ":")
		if around, known := kindsOfSource[kind]; ok && known {
			s = around[0] + strings.TrimSpace(place) + around[1]
		}
		out = append(out, s)
	}
	return out
}
