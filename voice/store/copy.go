package store

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Section is one bucket in the text form that copies and exports have: a line for each record, with a checksum of its
// own, so that damage to one line costs that line only, and a count in front.
type Section struct {
	Bucket   string // a constant such as [Mutes]; empty where that line is damaged
	Records  int    // how many there should be; -1 where that is not known
	Revision uint64 // the newest that it knows
	Rows     []Row
	Damaged  []string // lines that are not whole, by key where it can still be read
}

// Row is a record as the server has it.
type Row struct {
	Key      string // escaped
	Revision uint64
	Raw      []byte // nil: deleted
}

// live returns how many rows are records.
func (s *Section) live() (n int) {
	for _, r := range s.Rows {
		if r.Raw != nil {
			n++
		}
	}
	return n
}

const (
	textVersion = 1
	textHead    = "earshot-state "
	textBucket  = "bucket "
	deleted     = "-"

	maxText = 1 << 30 // bytes of a file
	maxLine = 4 * MaxRecord
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(parts ...string) string {
	sum := uint32(0)
	for _, p := range parts {
		sum = crc32.Update(sum, castagnoli, []byte(p))
	}
	return fmt.Sprintf("%08x", sum)
}

// appendSections writes the text form of sections.
func appendSections(dst []byte, all ...Section) []byte {
	line := func(s string) { dst = append(append(append(append(dst, checksum(s)...), ' '), s...), '\n') }
	line(textHead + strconv.Itoa(textVersion))
	for _, s := range all {
		line(fmt.Sprintf("%s%s %d %d", textBucket, s.Bucket, s.Records, s.Revision))
		for _, r := range s.Rows {
			raw := []byte(deleted)
			if r.Raw != nil {
				if raw = r.Raw; bytes.ContainsAny(raw, "\r\n") {
					var one bytes.Buffer
					if json.Compact(&one, raw) == nil {
						raw = one.Bytes()
					}
				}
			}
			line(fmt.Sprintf("%d %s %s", r.Revision, r.Key, raw))
		}
	}
	return dst
}

// readSections reads the text form. It leaves out damaged parts and notes them. Only a foreign text, or one of a later
// version, is an error.
func readSections(from io.Reader) (all []Section, err error) {
	in := bufio.NewScanner(io.LimitReader(from, maxText))
	in.Buffer(nil, maxLine)
	s := Section{Records: -1}
	started, ours, number := false, false, 0
	close := func() {
		if started || len(s.Rows)+len(s.Damaged) > 0 {
			all = append(all, s)
		}
	}
	for in.Scan() {
		number++
		sum, text, _ := strings.Cut(in.Text(), " ")
		if sum != checksum(text) {
			s.Damaged = append(s.Damaged, keyOf(text, number))
			continue
		}
		ours = true
		if v, ok := strings.CutPrefix(text, textHead); ok {
			if n, _ := strconv.Atoi(v); n > textVersion {
				return nil, fmt.Errorf("the file has version %d: %w", n, errNewer)
			}
			continue
		}
		if rest, ok := strings.CutPrefix(text, textBucket); ok {
			close()
			s, started = Section{Records: -1}, true
			if n, _ := fmt.Sscanf(rest, "%s %d %d", &s.Bucket, &s.Records, &s.Revision); n != 3 {
				s.Damaged = append(s.Damaged, keyOf("", number))
			}
			continue
		}
		fields := strings.SplitN(text, " ", 3)
		revision, err := strconv.ParseUint(fields[0], 10, 64)
		if len(fields) != 3 || err != nil || len(fields[1]) > 3*MaxKey {
			s.Damaged = append(s.Damaged, keyOf(text, number))
			continue
		}
		r := Row{Key: fields[1], Revision: revision}
		if fields[2] != deleted {
			r.Raw = []byte(fields[2])
		}
		s.Rows = append(s.Rows, r)
	}
	close()
	if err := in.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
		return nil, err
	} else if err != nil {
		all = append(all, Section{Records: -1, Damaged: []string{keyOf("", number+1) + " and all that follows"}})
	}
	if !ours {
		return nil, errors.New("this is no file that earshot state export has written")
	}
	return all, nil
}

// keyOf finds the key in a damaged line.
func keyOf(text string, number int) string {
	if f := strings.SplitN(text, " ", 3); len(f) == 3 && strings.IndexFunc(f[1], func(r rune) bool { return r > 0x7f || !safe(byte(r)) && r != '=' }) < 0 {
		return f[1]
	}
	return fmt.Sprint("line ", number)
}

// copiesFolder is below the directory of the embedded server. It has a copy of each bucket, in a text form that no
// damage to the server's own files reaches.
const copiesFolder = "copies"

func copyPath(dir, bucket string) string { return filepath.Join(dir, copiesFolder, bucket+".txt") }

// readCopy reads a bucket's copy, as one section. A missing file is an empty section with an unknown count.
func readCopy(path string) (Section, error) {
	one := Section{Records: -1}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return one, nil
	} else if err != nil {
		return one, err
	}
	defer f.Close()
	all, err := readSections(f)
	for _, s := range all {
		if s.Records >= 0 {
			one.Bucket, one.Records, one.Revision = s.Bucket, s.Records, s.Revision
		}
		one.Rows, one.Damaged = append(one.Rows, s.Rows...), append(one.Damaged, s.Damaged...)
	}
	return one, err
}

// newFile is behind the name of a file that is being written.
const newFile = ".new-"

// WriteFile replaces a file with sections, whole or not at all. Only its owner can read it: it has the hashes of
// passwords.
func WriteFile(path string, all ...Section) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+newFile+"*") // which makes it 0600
	if err != nil {
		return err
	}
	if err = WriteSections(f, all); err == nil {
		err = f.Sync()
	}
	if bad := f.Close(); err == nil {
		err = bad
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	return syncDir(filepath.Dir(path))
}

// ReadFile reads what WriteFile wrote, as [ReadSections] does.
func ReadFile(path string) ([]Section, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := readSections(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// syncDir makes a rename last. Windows has no such thing and needs none.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Copies reads the copies of all buckets below the directory of an embedded server, which may be running. They are at
// most [CopyDelay] behind it.
func Copies(dir string) (all []Section, err error) {
	paths, err := filepath.Glob(copyPath(dir, "*"))
	if err != nil || len(paths) == 0 {
		return nil, errors.Join(err, fmt.Errorf("there is no copy of the state in %s", filepath.Join(dir, copiesFolder)))
	}
	for _, path := range paths {
		s, err := readCopy(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		s.Bucket = strings.TrimSuffix(filepath.Base(path), ".txt")
		s.Rows = slices.DeleteFunc(s.Rows, func(r Row) bool { return r.Raw == nil })
		all = append(all, s)
	}
	return all, nil
}

// WriteSections writes them as [ReadSections] reads them.
func WriteSections(to io.Writer, all []Section) error {
	_, err := to.Write(appendSections(nil, all...))
	return err
}

// ReadSections reads the text of WriteSections. It leaves out damaged lines and names them in their section.
func ReadSections(from io.Reader) ([]Section, error) { return readSections(from) }

// Problems returns what is wrong with a section by its own account.
func (s *Section) Problems() (all []string) {
	for _, d := range s.Damaged {
		all = append(all, fmt.Sprintf("%s: %s is damaged", cmp.Or(s.Bucket, "a bucket"), d))
	}
	if n := s.Records - s.live(); s.Records >= 0 && n > 0 {
		all = append(all, fmt.Sprintf("%s: %d of %d records are missing", s.Bucket, n, s.Records))
	}
	return all
}

// CopyDelay is how long a change waits for its copy, together with others that come meanwhile; with a bucket that takes
// long to write, [copyRest] times as long as that.
const CopyDelay = 200 * time.Millisecond

const copyRest = 20

// copyAgain is the pause between attempts to write a copy.
const copyAgain = 5 * time.Second

// copyAll keeps the copy of an embedded server's bucket, or an external one's count, up to date.
func (b *Bucket[T]) copyAll() {
	failed, delay := false, CopyDelay
	for ended := false; !ended; {
		select {
		case <-b.s.ctx.Done():
			ended = true
		case <-b.changed:
		}
		if !ended {
			select {
			case <-b.s.ctx.Done():
				ended = true
			case <-time.After(delay):
			}
		}
		began := time.Now()
		s, changed := b.section()
		if !changed {
			continue
		}
		var err error
		if b.s.embedded() {
			err = WriteFile(copyPath(b.s.cfg.Dir, b.spec.Name), s)
		} else if !ended {
			err = b.s.count(b.name, counted{s.Records, s.Revision})
		}
		delay = max(CopyDelay, copyRest*time.Since(began))
		b.mu.Lock()
		b.copyProblem = nil
		if err == nil {
			b.copied, b.copySince = b.version(s), time.Time{}
		} else if b.s.embedded() {
			if b.copySince.IsZero() {
				b.copySince = time.Now()
			}
			b.copyProblem = fmt.Errorf("the copy of %s cannot be written: %w", b.spec.Name, err)
		}
		b.mu.Unlock()
		if err == nil {
			failed = false
			continue
		}
		if !failed {
			b.s.cfg.Log.Warn("the copy of a bucket cannot be written, and is tried again", "bucket", b.spec.Name, "err", err)
		}
		if failed = true; !ended {
			select {
			case <-b.s.ctx.Done(): // and once more
			case <-time.After(copyAgain):
			}
			poke(b.changed)
		}
	}
}

// section returns the bucket as it is stored, and whether that differs from the last copy.
func (b *Bucket[T]) section() (s Section, changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Bucket = b.spec.Name
	for key, e := range b.known {
		r := Row{Revision: e.revision}
		r.Key, _ = escape(key)
		if !e.gone {
			s.Records++
			r.Raw = e.raw
		}
		s.Revision = max(s.Revision, e.revision)
		s.Rows = append(s.Rows, r)
	}
	select {
	case <-b.synced:
	default:
		return s, false // not everything may be known yet
	}
	slices.SortFunc(s.Rows, func(a, b Row) int { return strings.Compare(a.Key, b.Key) })
	return s, b.version(s) != b.copied
}

// version tells two contents apart.
func (b *Bucket[T]) version(s Section) string { return checksum(string(appendSections(nil, s))) }

// counts is the bucket that has how many records each bucket of an external server has.
const counts = prefix + "counts"

// count notes how many records a bucket has.
func (s *Store) count(bucket string, c counted) error {
	kv, err := s.keyValue(s.ctx, counts)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, attemptTime)
	defer cancel()
	if e, err := kv.Get(ctx, bucket); err == nil && bytes.Equal(e.Value(), raw) {
		return nil // another node was faster
	}
	_, err = kv.Put(ctx, bucket, raw)
	return err
}

// counted reads the note of count. An unreadable one counts as unknown.
func (s *Store) counted(ctx context.Context, bucket string) counted {
	unknown := counted{Records: -1}
	kv, err := s.keyValue(ctx, counts)
	if err != nil {
		return unknown
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	e, err := kv.Get(ctx, bucket)
	if err != nil {
		return unknown
	}
	var c counted
	if err := strictly(e.Value(), &c); err != nil {
		return unknown
	}
	return c
}

// Export returns everything that is in force, of all open buckets.
func (s *Store) Export() (all []Section) {
	s.mu.Lock()
	buckets := s.buckets
	s.mu.Unlock()
	for _, b := range buckets {
		all = append(all, b.export())
	}
	return all
}

// Import stores records of an export in the open buckets, each in the place of the one with its key. It returns how
// many it has stored; the error names those that it has not.
func (s *Store) Import(ctx context.Context, all []Section) (taken int, err error) {
	s.mu.Lock()
	buckets := s.buckets
	s.mu.Unlock()
	var faults []error
	for _, section := range all {
		known := false
		for _, b := range buckets {
			if b.export().Bucket != section.Bucket {
				continue
			}
			known = true
			n, err := b.restore(ctx, section.Rows)
			taken += n
			faults = append(faults, err)
		}
		if !known && len(section.Rows) > 0 {
			faults = append(faults, fmt.Errorf("there is no bucket %q: its %d records are left out", section.Bucket, len(section.Rows)))
		}
	}
	return taken, errors.Join(faults...)
}
