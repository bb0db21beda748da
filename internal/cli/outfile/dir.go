package outfile

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sys/unix"
)

// Dir is a temporary folder. It is locked as long as the process that made it lives.
type Dir struct {
	Path string
	lock *os.File
}

// TempDir makes a folder in the system's temporary folder; its name is prefix, "-" and random
// letters. Folders with this prefix that killed processes of this user left are removed first.
func TempDir(prefix string) (*Dir, error) {
	d := PlanDir(prefix)
	return d, d.Make()
}

// PlanDir names a folder that Make makes.
func PlanDir(prefix string) *Dir {
	Sweep(prefix)
	return &Dir{Path: filepath.Join(os.TempDir(), prefix+"-"+rand.Text())}
}

// Make makes the folder, which must not be there yet.
func (d *Dir) Make() error {
	for {
		if err := os.Mkdir(d.Path, 0o700); err != nil {
			return fmt.Errorf("no temporary folder can be made in %s: %w; TMPDIR names another place", filepath.Dir(d.Path), cause(err))
		}
		f, err := os.Open(d.Path)
		if err == nil && lock(f) {
			d.lock = f
			return nil
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(d.Path)
			return err
		}
		// Another process took it for one that was left, before the lock.
	}
}

// CaseFolder is the prefix of the folders in which cases on hardware have their files.
const CaseFolder = "conform-files"

// Sweep removes the folders with this prefix that killed processes of this user left in the
// system's temporary folder.
func Sweep(prefix string) {
	ours := regexp.MustCompile("^" + regexp.QuoteMeta(prefix) + "-[A-Z2-7]{26}$")
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return // what cannot be read has nothing that we could remove
	}
	for _, e := range entries {
		if path := filepath.Join(os.TempDir(), e.Name()); ours.MatchString(e.Name()) && e.IsDir() && abandoned(path) {
			_ = os.RemoveAll(path)
		}
	}
}

// CheckFolder returns an error if the folder in which the process is was removed.
func CheckFolder() error {
	if _, err := os.Getwd(); err != nil {
		return errors.New("the folder in which this command was started is gone: change to one that is there")
	}
	return nil
}

// LockFolder waits until no other process of this program writes a set of files to the folder, so
// that the set that stays there is of one run. It gives up when another has had the folder for some
// seconds, or soon after the end of ctx: a mixed set is better than none. What it returns ends the
// lock.
func LockFolder(ctx context.Context, dir string) (unlock func()) {
	f, err := os.Open(dir)
	if err != nil {
		return func() {} // whoever writes to it says why
	}
	late := time.After(folderPatience)
	end := ctx.Done()
	for errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
		select {
		case <-end:
			late, end = time.After(patience), nil
		case <-late:
			return func() { _ = f.Close() }
		case <-time.After(10 * time.Millisecond):
		}
	}
	return func() { _ = f.Close() }
}

// folderPatience is how long a process may take to write a set of files.
const folderPatience = 10 * time.Second

// Remove removes the folder with what is in it.
func (d *Dir) Remove() error {
	err := os.RemoveAll(d.Path)
	if d.lock != nil {
		_ = d.lock.Close()
	}
	return err
}

// RemoveOrphan removes a folder of TempDir when the process that made it has ended. It is for a
// process that noticed that end by the loss of another file, which may come before that of the
// lock: it waits up to half a minute. Other processes may remove the folder too, or still write to
// it.
func RemoveOrphan(path string) {
	for range orphanLooks {
		if abandoned(path) {
			_ = os.RemoveAll(path) // an error: it is tried again
		}
		if _, err := os.Lstat(path); err != nil {
			return
		}
		time.Sleep(orphanPause)
	}
}

// A killed process on a busy machine may keep its lock for seconds.
const orphanPause = 20 * time.Millisecond

var orphanLooks = 1500
