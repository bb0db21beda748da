package workers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxMessage bounds a message, in bytes: the longest records of cases have some 100 KiB.
const MaxMessage = 16 << 20

// MaxQuoted is how many characters of what is no message are quoted.
const MaxQuoted = 80

// Messages are what a worker sends, as JSON values, one a line.
type Messages[T any] struct {
	C    chan T // closed at their end
	err  error
	quit chan struct{}
}

// Receive reads messages from r until it ends, something else comes, or Close.
func Receive[T any](r io.Reader) *Messages[T] {
	m := &Messages[T]{C: make(chan T), quit: make(chan struct{})}
	go m.read(r)
	return m
}

func (m *Messages[T]) read(r io.Reader) {
	defer close(m.C)
	lines := bufio.NewReader(r)
	for {
		v, err := Next[T](lines, MaxMessage)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				m.err = err
			}
			return
		}
		select {
		case m.C <- v:
		case <-m.quit:
			return
		}
	}
}

// Err says what ended the messages, once C is closed; nil: the worker closed its end, in the middle
// of a message too.
func (m *Messages[T]) Err() error { return m.err }

// Close has messages that come from now on dropped.
func (m *Messages[T]) Close() { close(m.quit) }

// Next reads a message of at most so many bytes. The error is io.EOF if the other end is closed, in
// the middle of a message too.
func Next[T any](lines *bufio.Reader, most int) (v T, err error) {
	text, err := line(lines, most)
	if err != nil {
		return v, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // 64-bit values of observations stay exact
	if err := dec.Decode(&v); err != nil {
		return v, fmt.Errorf("%.*q in place of a message: %w", MaxQuoted, text, err)
	}
	return v, nil
}

func line(lines *bufio.Reader, most int) ([]byte, error) {
	var text []byte
	for {
		part, err := lines.ReadSlice('\n')
		if text = append(text, part...); len(text) > most {
			return nil, fmt.Errorf("a message that is longer than %d MiB and begins with %.*q", most>>20, MaxQuoted, text)
		}
		switch {
		case err == nil:
			return text, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, io.EOF
		}
	}
}
