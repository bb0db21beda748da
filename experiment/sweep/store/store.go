// Package store keeps results of simulations in a plain folder, one small file each, under an
// address: a hash of the scenario with every setting, of the profile's values, of the seed and of
// the version of the model. Nothing is changed in place. A file is put there by a rename and has a
// checksum, so several processes and machines may use a folder at once, and a file that a loss of
// power cut off counts as missing.
package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Format is the version of the layout of folder and files.
const Format = "rdmasim results 1"

// formatFile says in the folder which layout it has.
const formatFile = "FORMAT"

// modelFile says in a folder of which model its results are.
const modelFile = "MODEL"

// AddressSize is the number of bytes of an address.
const AddressSize = 20

// Address names a result by what decides it.
type Address [AddressSize]byte

// String returns the text form.
func (a Address) String() string { return hex.EncodeToString(a[:]) }

// AddressOf is the address of what decides a result, by the model of a version.
func AddressOf(model string, identity []byte) Address {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n", Format, model)
	h.Write(identity)
	return Address(h.Sum(nil)[:AddressSize])
}

// Store is a folder of results.
type Store struct {
	dir, model string // folders
	name       string // of the model
}

// Open opens a folder, and makes it if it is missing. model is the version of the model: each has a
// folder in it.
func Open(dir, model string) (*Store, error) {
	s := &Store{dir, filepath.Join(dir, folderOf(model)), model}
	err := Check(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = begin(dir)
	}
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.model, 0o777); err != nil {
		return nil, fmt.Errorf("the store cannot be used: %w", err)
	}
	return s, s.sign()
}

// Check says whether a folder is a store of this version.
func Check(dir string) error {
	have, err := readFile(filepath.Join(dir, formatFile))
	if err != nil {
		return fmt.Errorf("%s is not a store of results: %w", dir, err)
	}
	if got := strings.TrimSpace(string(have)); got != Format {
		return fmt.Errorf("the store %s has another version: its file says %.60q, and this program reads %q: give another folder with --store, or remove that one", dir, got, Format)
	}
	return nil
}

// begin makes a folder a store, if nothing else is in it.
func begin(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("the store cannot be made: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("the store cannot be used: %w", err)
	}
	for _, e := range entries {
		if n := e.Name(); n != formatFile && !strings.HasPrefix(n, temporary) {
			return fmt.Errorf("%s has other files, such as %s, and no file %s: it is not a store: give it a folder of its own", dir, n, formatFile)
		}
	}
	return put(filepath.Join(dir, formatFile), []byte(Format+"\n"))
}

// folderOf is a short name of a version of the model.
func folderOf(model string) string {
	h := sha256.Sum256([]byte(model))
	return hex.EncodeToString(h[:6])
}

// Dir is the folder.
func (s *Store) Dir() string { return s.dir }

func (s *Store) path(a Address) string {
	name := a.String()
	return filepath.Join(s.model, name[:2], name[2:]+".json")
}

// sealed is what a file holds.
type sealed struct {
	Sum string `json:"sum"`
	// Address is that of the result, so that a file that was copied or renamed is not taken for
	// another one's result.
	Address string          `json:"address"`
	Result  json.RawMessage `json:"result"`
}

func sumOf(text []byte) string {
	h := sha256.Sum256(text)
	return hex.EncodeToString(h[:8])
}

// mostBytes bounds a file of a store: a result is some KiB.
const mostBytes = 64 << 20

var (
	errNotPlain = errors.New("is not a regular file")
	errLong     = fmt.Errorf("is longer than %d MiB", mostBytes>>20)
)

// readFile reads a plain file that is not too long, and waits for nobody: other users of a store
// may have put anything there.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%s %w", path, errNotPlain)
	case st.Size() > mostBytes:
		return nil, fmt.Errorf("%s %w", path, errLong)
	}
	return io.ReadAll(io.LimitReader(f, mostBytes))
}

// Get is the result of an address. A file that is missing or damaged is fs.ErrNotExist.
func (s *Store) Get(a Address) ([]byte, error) { return read(s.path(a), a.String(), false) }

// read reads a result. unnamed allows one without an address, which programs of before wrote.
func read(path, address string, unnamed bool) ([]byte, error) {
	text, err := readFile(path)
	if errors.Is(err, errNotPlain) || errors.Is(err, errLong) {
		return nil, fmt.Errorf("%w, and counts as missing: %w", err, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	var v sealed
	if json.Unmarshal(text, &v) != nil || v.Sum != sumOf(v.Result) {
		return nil, fmt.Errorf("%s is damaged, and counts as missing: %w", path, fs.ErrNotExist)
	}
	if v.Address != address && !(unnamed && v.Address == "") {
		return nil, fmt.Errorf("%s has the result of %.40q, and counts as missing: %w", path, v.Address, fs.ErrNotExist)
	}
	return v.Result, nil
}

// Has reports whether the result of an address is there and whole.
func (s *Store) Has(a Address) (bool, error) {
	_, err := s.Get(a)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Put puts a result, one JSON value, in place.
func (s *Store) Put(a Address, result []byte) error {
	var one bytes.Buffer
	if err := json.Compact(&one, result); err != nil {
		return err
	}
	text := fmt.Appendf(nil, "{\"sum\":%q,\"address\":%q,\"result\":%s}\n", sumOf(one.Bytes()), a, &one)
	path := s.path(a)
	err := put(path, text)
	for try := 0; errors.Is(err, fs.ErrNotExist) && try < putTries; try++ { // the first one there, or results were collected meanwhile
		if err = os.MkdirAll(filepath.Dir(path), 0o777); err == nil {
			err = put(path, text)
		}
		if err == nil {
			err = s.sign()
		}
	}
	return err
}

// putTries is how often a folder is made again that another process removes as an empty one.
const putTries = 10

// sign says in the folder which layout it has, and in that of the model which one it is of.
func (s *Store) sign() error {
	if err := Check(s.dir); errors.Is(err, fs.ErrNotExist) {
		if err := put(filepath.Join(s.dir, formatFile), []byte(Format+"\n")); err != nil {
			return err
		}
	}
	name := filepath.Join(s.model, modelFile)
	if have, err := readFile(name); err == nil && strings.TrimSpace(string(have)) == s.name {
		return nil
	}
	return put(name, []byte(s.name+"\n"))
}

// temporary begins the names of files that are not in place yet.
const temporary = ".new-"

// put writes a file beside its place and renames it.
func put(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644))
	if err = errors.Join(err, f.Close()); err == nil {
		err = replace(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// replace renames a file to a path. An empty folder there gives way, as all else does.
func replace(from, path string) error {
	err := os.Rename(from, path)
	if st, serr := os.Lstat(path); err == nil || serr != nil || !st.IsDir() {
		return err
	}
	if os.Remove(path) != nil {
		return fmt.Errorf("%s is a folder with files in it, where a result belongs: move it away", path)
	}
	return os.Rename(from, path)
}
