package pcap

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// packed are the first bytes of files of other compressors, which are named and not read.
var packed = []struct{ magic, name string }{
	{"\x28\xB5\x2F\xFD", "zstd"}, {"\x04\x22\x4D\x18", "lz4"}, {"\xFD7zX", "xz"}, {"BZh", "bzip2"},
}

// unzip returns a reader of what a gzip file holds, whatever its name; any other file is read as it
// is.
func unzip(r *bufio.Reader) (_ *bufio.Reader, zipped bool, err error) {
	magic, _ := r.Peek(4)
	for _, p := range packed {
		if bytes.HasPrefix(magic, []byte(p.magic)) {
			return nil, false, fmt.Errorf("%w, but one that %s has compressed: unpack it first", ErrNotCapture, p.name)
		}
	}
	if !bytes.HasPrefix(magic, []byte("\x1F\x8B")) {
		return r, false, nil
	}
	z, err := gzip.NewReader(r)
	if err = zipError(err); err != nil {
		if errors.As(err, new(*brokenZip)) {
			err = fmt.Errorf("%w: %w", ErrNotCapture, err)
		}
		return nil, false, err
	}
	return bufio.NewReaderSize(&zipReader{z}, 1<<16), true, nil
}

// zipReader reads a gzip stream, and tells what is wrong with it from the errors of its file.
type zipReader struct{ z *gzip.Reader }

func (r *zipReader) Read(b []byte) (int, error) {
	n, err := r.z.Read(b)
	return n, zipError(err)
}

// brokenZip is what is wrong with a gzip stream.
type brokenZip struct{ reason string }

func (e *brokenZip) Error() string { return e.reason }

func zipError(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case err == io.ErrUnexpectedEOF:
		return &brokenZip{"its gzip data ends too early"}
	case err == gzip.ErrChecksum:
		return &brokenZip{"its gzip data has another checksum than it states"}
	case err == gzip.ErrHeader:
		return &brokenZip{"what follows here is no gzip data"}
	case errors.As(err, &corrupt):
		return &brokenZip{fmt.Sprintf("its gzip data is corrupt, about %d bytes into it", int64(corrupt))}
	}
	return err
}
