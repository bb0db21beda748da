package agent

import (
	"encoding/json"
	"fmt"
	"io"
)

// maxReply is how long a reply of a player may be, in bytes: enough for the contents of a buffer of 32 MiB, more than any case reads.
const maxReply = 64 << 20

// Replies reads what a player answers. A player on another machine is whatever its agent makes of it, and so
// may not fill this one's memory.
type Replies struct {
	dec  *json.Decoder
	from bounded
}

// NewReplies reads replies from r.
func NewReplies(r io.Reader) *Replies {
	x := &Replies{from: bounded{r: r}}
	x.dec = json.NewDecoder(&x.from)
	return x
}

// Next reads a reply into v. After an error there are no more.
func (x *Replies) Next(v any) error {
	x.from.left = maxReply
	return x.dec.Decode(v)
}

// bounded is a reader that gives so many bytes and then an error.
type bounded struct {
	r    io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, fmt.Errorf("a reply of the player is longer than %d MiB", maxReply>>20)
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
