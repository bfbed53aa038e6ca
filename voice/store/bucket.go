package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Bucket holds the records of one kind. Its content is in memory: reading costs no request and never fails, and
// [Bucket.Set] and [Bucket.Unset] never wait. Its methods may be called from any goroutine.
type Bucket[T any] struct {
	s    *Store
	spec Spec[T]
	name string // on the server

	write chan struct{} // poked when there is something to write
	again chan struct{} // poked when everything has to be read again

	changed chan struct{} // poked when the copy is behind

	mu      sync.Mutex
	kv      jetstream.KeyValue
	created time.Time          // of the bucket that was read last
	live    context.Context    // done when the connection breaks; nil while there is none
	kill    context.CancelFunc // ends live
	epoch   uint64             // counts readings of the whole bucket
	known   map[string]entry[T]
	waiting map[string]*change[T]
	order   []string   // of the keys in waiting
	flight  *change[T] // being written
	held    *event[T]  // the newest event for the key in flight
	news    map[string]Change[T]
	wake    func()
	aside   map[string]aside // unreadable ones that are still in their places
	problem error
	since   time.Time
	synced  chan struct{} // closed when the bucket has been read for the first time

	base        counted // the last count
	back        []string
	backLive    int
	hints       []string // of damaged lines in the copy
	copied      string   // the version of the copy
	copyProblem error
	copySince   time.Time
}

// counted is the number of a bucket's records, kept apart from it.
type counted struct {
	Records  int    `json:"records"` // -1: not known
	Revision uint64 `json:"revision"`
}

// entry is a record as the server has it.
type entry[T any] struct {
	value    T
	raw      []byte
	revision uint64
	epoch    uint64 // in which that was seen
	gone     bool   // deleted: kept until the next reading, so that nothing older brings it back
}

// change waits to be written.
type change[T any] struct {
	key    string
	value  T
	raw    []byte // nil: delete
	stored []func(error)
}

// event is the server's news of a key.
type event[T any] struct {
	key      string
	value    T
	raw      []byte // nil: deleted
	revision uint64
}

type aside struct {
	revision uint64
	raw      []byte
}

// Change is another node's change of a record.
type Change[T any] struct {
	Key   string
	Value T
	Gone  bool // and Value is none
}

// OpenBucket reads a bucket, after making it if it is not there, and keeps up with it from then on. Records that cannot
// be read are set aside and logged. ctx bounds the opening.
func OpenBucket[T any](ctx context.Context, s *Store, spec Spec[T]) (*Bucket[T], error) {
	b := &Bucket[T]{
		s: s, spec: spec, name: prefix + spec.Name,
		write: make(chan struct{}, 1), again: make(chan struct{}, 1), synced: make(chan struct{}), changed: make(chan struct{}, 1),
		base:  counted{Records: -1},
		known: make(map[string]entry[T]), waiting: make(map[string]*change[T]),
		news: make(map[string]Change[T]), aside: make(map[string]aside),
	}
	if s.embedded() {
		if err := b.preload(); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	s.buckets = append(slices.Clone(s.buckets), b)
	s.mu.Unlock()
	s.wg.Go(b.follow)
	s.wg.Go(b.writeAll)
	if !s.cfg.Look {
		s.wg.Go(b.copyAll)
	}
	late := time.After(stuckTime)
	for {
		select {
		case <-b.synced:
			if !s.cfg.Look {
				s.wg.Go(b.tidy)
			}
			return b, nil
		case <-late:
			if s.embedded() {
				select {
				case s.stuck <- b.name:
				case <-ctx.Done():
				}
			}
		case <-ctx.Done():
			err := ctx.Err()
			if _, _, problem := b.state(); problem != nil {
				err = problem
			}
			return nil, fmt.Errorf("cannot read the bucket %s from %s: %w", b.name, s.where, err)
		}
	}
}

// preload takes the copy as the content until the server has been read. Then records that the server has lost go back
// to it.
func (b *Bucket[T]) preload() error {
	path := copyPath(b.s.cfg.Dir, b.spec.Name)
	c, err := readCopy(path)
	switch {
	case errors.Is(err, errNewer):
		return fmt.Errorf("the copy %s cannot be read: %w; update this Earshot", path, err)
	case err != nil: // nothing of it is ours, so only the server's word counts
		b.hints = append(b.hints, fmt.Sprintf("the copy %s: %v", path, err))
	}
	b.base = counted{c.Records, c.Revision}
	b.hints = append(b.hints, c.Damaged...)
	for _, r := range c.Rows {
		key, ok := unescape(r.Key)
		if !ok {
			continue
		}
		e := entry[T]{raw: r.Raw, revision: r.Revision, gone: r.Raw == nil}
		if !e.gone {
			if e.value, err = b.spec.decode(key, r.Raw); err != nil {
				continue // the server tells of those of a later version
			}
		}
		b.known[key] = e
	}
	if len(b.hints) > 0 { // for a person to look at
		b.s.note(fmt.Sprintf("%s: the copy is damaged and is rewritten: %v", b.spec.Name, b.hints[:min(len(b.hints), maxDamage)]))
		if b.s.cfg.Look {
			return nil
		}
		kept := path + ".damaged-" + time.Now().UTC().Format("20060102-150405.000")
		if err := os.Rename(path, kept); err == nil {
			b.s.cfg.Log.Warn("the copy of a bucket is damaged; it is kept, and a new one is written", "bucket", b.spec.Name, "as", kept, "lines", b.hints)
		}
	}
	return nil
}

// Load returns every record.
func (b *Bucket[T]) Load() map[string]T {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make(map[string]T, len(b.known))
	for key, e := range b.known {
		if !e.gone {
			all[key] = e.value
		}
	}
	overlay := func(c *change[T]) {
		if c.raw == nil {
			delete(all, c.key)
		} else {
			all[c.key] = c.value
		}
	}
	if b.flight != nil {
		overlay(b.flight)
	}
	for _, c := range b.waiting {
		overlay(c)
	}
	return all
}

// Get returns one record.
func (b *Bucket[T]) Get(key string) (v T, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.waiting[key]
	if c == nil && b.flight != nil && b.flight.key == key {
		c = b.flight
	}
	if c != nil {
		return c.value, c.raw != nil
	}
	e, ok := b.known[key]
	return e.value, ok && !e.gone
}

// Put stores a record, in place of the one with its key. It returns nil when the server has synced it to disk. A
// refused record is an error. Any other error is [ErrNotYet]: the record is in force nevertheless and will be stored
// when that is possible. The value must not be changed afterwards.
func (b *Bucket[T]) Put(ctx context.Context, key string, v T) error {
	return b.wait(ctx, func(stored func(error)) error { return b.Set(key, v, stored) })
}

// Delete deletes a record; there need not be one. It returns the same errors as [Bucket.Put].
func (b *Bucket[T]) Delete(ctx context.Context, key string) error {
	return b.wait(ctx, func(stored func(error)) error { return b.Unset(key, stored) })
}

// ErrNotYet is the error of a change that is in force but not stored; [Health.Waiting] counts them.
var ErrNotYet = errors.New("not stored yet")

// Set does as [Bucket.Put] without waiting: the record is in force at once and stored soon. Of several waiting changes
// of one key, the newest is stored. Only a refused record is an error. Otherwise stored, which may be nil, is called
// once with the result of Put: by any goroutine, perhaps before Set returns, and it must not block.
func (b *Bucket[T]) Set(key string, v T, stored func(error)) error {
	if _, err := escape(key); err != nil {
		return err
	}
	raw, err := b.spec.encode(key, v)
	if err != nil {
		return fmt.Errorf("the record %q of %s is refused: %w", key, b.name, err)
	}
	b.enqueue(&change[T]{key: key, value: v, raw: raw}, stored)
	return nil
}

// Unset does as [Bucket.Delete] without waiting, as [Bucket.Set] does for Put.
func (b *Bucket[T]) Unset(key string, stored func(error)) error {
	if _, err := escape(key); err != nil {
		return err
	}
	b.enqueue(&change[T]{key: key}, stored)
	return nil
}

// enqueue takes over from a waiting change of the same key, and from the callers that wait for it: they asked for less
// than what will be stored.
func (b *Bucket[T]) enqueue(c *change[T], stored func(error)) {
	b.mu.Lock()
	if old := b.waiting[c.key]; old != nil {
		c.stored = old.stored
	} else {
		b.order = append(b.order, c.key)
	}
	b.waiting[c.key] = c
	delete(b.news, c.key) // it overwrites what others did
	lost := b.live == nil
	if stored != nil && !lost {
		c.stored = append(c.stored, stored)
	}
	b.mu.Unlock()
	if stored != nil && lost {
		stored(b.unreachable())
	}
	poke(b.write)
}

func (b *Bucket[T]) wait(ctx context.Context, begin func(stored func(error)) error) error {
	done := make(chan error, 1)
	if err := begin(func(err error) { done <- err }); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return b.notYet(ctx.Err())
	}
}

func (b *Bucket[T]) notYet(err error) error { return fmt.Errorf("%s: %w: %w", b.name, ErrNotYet, err) }

func (b *Bucket[T]) unreachable() error { return b.notYet(errors.New("the server cannot be reached")) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Watch has wake called, from any goroutine and possibly often, when [Bucket.Take] has something. It must not block.
func (b *Bucket[T]) Watch(wake func()) {
	b.mu.Lock()
	b.wake = wake
	pending := len(b.news) > 0
	b.mu.Unlock()
	if pending {
		wake()
	}
}

// Take returns what other nodes have changed since the last call, the newest of each key. It leaves out changes made
// here, and records that [OpenBucket] has read.
func (b *Bucket[T]) Take() []Change[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Change[T], 0, len(b.news))
	for _, c := range b.news {
		out = append(out, c)
	}
	clear(b.news)
	return out
}

func (b *Bucket[T]) state() (waiting int, since time.Time, problem error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting = len(b.waiting)
	if b.flight != nil {
		waiting++
	}
	if b.problem == nil {
		return waiting, b.copySince, b.copyProblem
	}
	return waiting, b.since, b.problem
}

// unstored names every waiting change.
func (b *Bucket[T]) unstored() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := func(c *change[T]) {
		what := "delete"
		if c.raw != nil {
			what = string(c.raw)
		}
		all = append(all, b.spec.Name+" "+c.key+" "+what)
	}
	if b.flight != nil {
		name(b.flight)
	}
	for _, key := range slices.Sorted(maps.Keys(b.waiting)) {
		name(b.waiting[key])
	}
	return all
}

// export returns everything that is in force.
func (b *Bucket[T]) export() Section {
	b.mu.Lock()
	s := Section{Bucket: b.spec.Name}
	revisions := make(map[string]uint64)
	for key, e := range b.known {
		revisions[key] = e.revision
		s.Revision = max(s.Revision, e.revision)
	}
	b.mu.Unlock()
	all := b.Load()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		raw, err := b.spec.encode(key, all[key])
		if err != nil {
			continue // every key was checked
		}
		r := Row{Raw: raw, Revision: revisions[key]}
		r.Key, _ = escape(key)
		s.Rows = append(s.Rows, r)
	}
	s.Records = len(s.Rows)
	return s
}

// restore stores records of an export.
func (b *Bucket[T]) restore(ctx context.Context, rows []Row) (taken int, err error) {
	var faults []error
	for _, r := range rows {
		key, ok := unescape(r.Key)
		if !ok || r.Raw == nil {
			continue
		}
		v, err := b.spec.decode(key, r.Raw)
		if err == nil {
			err = b.Put(ctx, key, v)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %s: %w", b.spec.Name, key, err))
			continue
		}
		taken++
	}
	return taken, errors.Join(faults...)
}

// fails notes why the bucket is not in order; nil: it is. The lock is held.
func (b *Bucket[T]) fails(err error) {
	if err != nil && b.problem == nil {
		b.since = time.Now()
	}
	b.problem = err
}

// tidy drops the marks of records that were deleted long ago; every later program would read them all.
func (b *Bucket[T]) tidy() {
	ctx, cancel := context.WithTimeout(b.s.ctx, time.Minute)
	defer cancel()
	b.mu.Lock()
	kv := b.kv
	b.mu.Unlock()
	if err := kv.PurgeDeletes(ctx, jetstream.DeleteMarkersOlderThan(b.s.marks)); err != nil {
		b.s.cfg.Log.Debug("bucket cannot be tidied", "bucket", b.name, "err", err)
	}
}

func (b *Bucket[T]) disconnected() {
	b.mu.Lock()
	tell := b.sever()
	b.fails(errors.New("the bucket " + b.name + " has not been read since the server was lost"))
	b.mu.Unlock()
	tell()
}

// sever stops writing until the bucket has been read again. The lock is held. Call tell without it, for callers that
// would wait until then.
func (b *Bucket[T]) sever() (tell func()) {
	if b.kill != nil {
		b.kill()
	}
	b.live, b.kill = nil, nil
	var all []func(error)
	for _, c := range b.waiting {
		all = append(all, c.stored...)
		c.stored = nil
	}
	return func() {
		for _, stored := range all {
			stored(b.unreachable())
		}
	}
}

func (b *Bucket[T]) resync() { poke(b.again) }

// follow reads the bucket and keeps up with it, from the beginning after each break.
func (b *Bucket[T]) follow() {
	pause := firstPause
	for {
		began := time.Now()
		err := b.read()
		b.mu.Lock()
		tell := b.sever()
		if err != nil {
			b.fails(err)
		}
		b.mu.Unlock()
		tell()
		if b.s.ctx.Err() != nil {
			return
		}
		if err == nil {
			pause = firstPause
			continue
		}
		if time.Since(began) > longPause {
			pause = firstPause
		}
		b.s.cfg.Log.Debug("bucket is read again", "bucket", b.name, "err", err, "in", pause)
		select {
		case <-b.s.ctx.Done():
			return
		case <-b.again:
			pause = firstPause
		case <-time.After(pause):
			pause = min(2*pause, longPause)
		}
	}
}

// read follows the bucket until it has to be read again, which is no error, or something goes wrong.
func (b *Bucket[T]) read() error {
	ctx, cancel := context.WithCancel(b.s.ctx)
	defer cancel()
	kv, err := b.s.keyValue(ctx, b.name)
	if err != nil {
		return err
	}
	created, err := b.s.created(ctx, kv)
	if err != nil {
		return err
	}
	w, err := kv.WatchAll(ctx)
	if err != nil {
		return fmt.Errorf("bucket %s: %w", b.name, err)
	}
	defer func() {
		w.Stop()
		for range w.Updates() { // else its writer waits for ever
		}
	}()
	if !b.s.embedded() && b.epoch == 0 {
		b.base = b.s.counted(ctx, b.name)
	}
	b.begin(kv)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-b.again:
			return nil
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return fmt.Errorf("bucket %s: the server has ended the watch", b.name)
			case e == nil:
				b.complete(created)
			default:
				b.see(ctx, kv, e)
			}
		}
	}
}

// created returns when the server's bucket of that name was made.
func (s *Store) created(ctx context.Context, kv jetstream.KeyValue) (t time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	status, err := kv.Status(ctx)
	if err != nil {
		return t, fmt.Errorf("bucket %s: %w", kv.Bucket(), err)
	}
	return status.(*jetstream.KeyValueBucketStatus).StreamInfo().Created, nil
}

// begin starts a reading of the whole bucket.
func (b *Bucket[T]) begin(kv jetstream.KeyValue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.epoch++
	b.kv = kv
	clear(b.aside)
}

// complete ends the reading of the whole bucket: a record that did not appear is gone. But if the bucket is another one
// than at the former reading, the server has lost that one, and missing records go back.
func (b *Bucket[T]) complete(created time.Time) {
	b.mu.Lock()
	lost, back := !b.created.IsZero() && !b.created.Equal(created), 0
	b.created = created
	for key, e := range b.known {
		if e.epoch == b.epoch {
			continue
		}
		delete(b.known, key)
		switch {
		case e.gone:
		case !lost && !b.s.embedded(): // nobody else changes its files
			b.tell(Change[T]{Key: key, Gone: true})
		default:
			b.giveBack(key, e)
			back++
		}
	}
	restored, live, missing, hints := b.back, b.backLive, 0, b.hints
	b.back, b.backLive, b.hints = nil, 0, nil
	first := false
	select {
	case <-b.synced:
	default:
		first = true
		missing = b.missing(live)
	}
	if missing == 0 && len(restored) == 0 {
		hints = nil // the copy's damage alone has cost nothing
	}
	b.live, b.kill = context.WithCancel(b.s.ctx)
	b.fails(nil)
	if first {
		clear(b.news) // the records from the start are no news
	}
	wake := b.toWake()
	b.mu.Unlock()
	b.s.found(b.spec.Name, restored, missing, hints)
	if lost {
		b.s.cfg.Log.Error("the state server has lost a bucket: its known records are written back", "bucket", b.name, "records", back)
	}
	if first {
		close(b.synced)
	}
	wake()
	poke(b.write)
	poke(b.changed)
}

// giveBack gives the server a record that it has lost. The lock is held, and the entry is no longer among the known
// ones.
func (b *Bucket[T]) giveBack(key string, e entry[T]) {
	if b.s.embedded() {
		b.back = append(b.back, key)
		if !e.gone {
			b.backLive++
		}
	}
	if b.waiting[key] == nil && (b.flight == nil || b.flight.key != key) {
		b.waiting[key] = &change[T]{key: key, value: e.value, raw: e.raw}
		b.order = append(b.order, key)
	}
}

// missing returns how many of the counted records nobody can account for. back are those just found missing, which are
// known. Each record newer than the count may have taken the place of a counted one, or may mark its end. The lock is
// held.
func (b *Bucket[T]) missing(back int) int {
	if b.base.Records < 0 {
		return 0
	}
	there := back
	for _, e := range b.known {
		if e.revision > b.base.Revision || !e.gone {
			there++
		}
	}
	for key := range b.aside {
		if e, ok := b.known[key]; !ok || e.gone { // it is reported by itself
			there++
		}
	}
	return max(b.base.Records-there, 0)
}

// see takes in the server's news of one key.
func (b *Bucket[T]) see(ctx context.Context, kv jetstream.KeyValue, e jetstream.KeyValueEntry) {
	ev := event[T]{key: e.Key(), revision: e.Revision()}
	key, ok := unescape(e.Key())
	if e.Operation() == jetstream.KeyValuePut {
		err := errors.New("its key is none of ours")
		if ok {
			ev.value, err = b.spec.decode(key, e.Value())
		}
		if err != nil {
			b.setAside(ctx, kv, e, key, ok, err)
			return
		}
		ev.raw = e.Value()
		if ev.raw == nil {
			ev.raw = []byte{}
		}
	} else if !ok {
		return
	}
	ev.key = key
	b.mu.Lock()
	if b.flight != nil && b.flight.key == key {
		b.held = &ev // the answer will show whether it is ours
	} else {
		b.take(ev)
	}
	wake := b.toWake()
	b.mu.Unlock()
	wake()
}

// take brings the known records up to date. The lock is held.
func (b *Bucket[T]) take(ev event[T]) {
	old, had := b.known[ev.key]
	if had && old.epoch == b.epoch && ev.revision <= old.revision {
		return
	}
	if had && b.s.embedded() && ev.revision < old.revision {
		// The server has lost everything after this. It numbers from there again, so ours mean nothing any more.
		delete(b.known, ev.key)
		delete(b.aside, ev.key)
		b.giveBack(ev.key, old)
		return
	}
	delete(b.aside, ev.key)
	b.known[ev.key] = entry[T]{ev.value, ev.raw, ev.revision, b.epoch, ev.raw == nil}
	poke(b.changed)
	had = had && !old.gone
	if had != (ev.raw != nil) || had && !bytes.Equal(old.raw, ev.raw) {
		b.tell(Change[T]{ev.key, ev.value, ev.raw == nil})
	}
}

// tell notes another node's change, unless one of ours will overwrite it. The lock is held.
func (b *Bucket[T]) tell(c Change[T]) {
	if b.waiting[c.Key] == nil {
		b.news[c.Key] = c
	}
}

// toWake returns the function to call when the lock has been given back.
func (b *Bucket[T]) toWake() func() {
	if b.wake == nil || len(b.news) == 0 {
		return func() {}
	}
	return b.wake
}

// setAside keeps an unreadable record from doing harm and from being lost. One of a later version stays where it is,
// for the nodes that can read it; any other is moved into the quarantine.
func (b *Bucket[T]) setAside(ctx context.Context, kv jetstream.KeyValue, e jetstream.KeyValueEntry, key string, ours bool, reason error) {
	a := Aside{b.name, e.Key(), e.Revision(), reason.Error(), time.Now().UTC(), e.Value()}
	first := b.s.report(a)
	b.mu.Lock()
	last, had := b.known[key]
	if had && last.epoch == 0 && errors.Is(reason, errNewer) { // from the copy, and older than the unreadable one
		delete(b.known, key)
		had = false
	}
	if had = had && ours && !last.gone; had { // the last that was readable stays known
		last.epoch, last.revision = b.epoch, e.Revision()
		b.known[key] = last
	}
	if ours {
		b.aside[key] = aside{e.Revision(), e.Value()}
	}
	b.mu.Unlock()
	log := b.s.cfg.Log.With("bucket", b.name, "key", e.Key(), "revision", e.Revision(), "reason", reason)
	if b.s.cfg.Look {
		return
	}
	if errors.Is(reason, errNewer) {
		if first {
			log.Error("a record cannot be read and is left alone: update this Earshot")
		}
		return
	}
	if err := b.s.quarantine(ctx, a); err != nil {
		log.Error("a record cannot be read and stays where it is, since it could not be moved", "err", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	// In the place of exactly this one: another node may have written a better one meanwhile.
	var err error
	if had {
		_, err = kv.Update(ctx, e.Key(), last.raw, e.Revision())
	} else {
		err = kv.Delete(ctx, e.Key(), jetstream.LastRevision(e.Revision()))
	}
	if err != nil {
		log.Error("a record cannot be read; it was copied to "+quarantine+" and is still in its place", "err", err)
		return
	}
	log.Error("a record cannot be read and was moved to "+quarantine, "replaced", had)
}

// quarantine stores a copy of an unreadable record. The key names the very revision, so that doing it twice is once.
func (s *Store) quarantine(ctx context.Context, a Aside) error {
	kv, err := s.keyValue(ctx, quarantine)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	_, err = kv.Put(ctx, a.Bucket+"."+a.Key+"."+strconv.FormatUint(a.Revision, 10), raw)
	return err
}

// Quarantined returns every record that was moved away, of all buckets and times.
func (s *Store) Quarantined(ctx context.Context) ([]Aside, error) {
	kv, err := s.keyValue(ctx, quarantine)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	w, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, err
	}
	defer func() {
		w.Stop()
		for range w.Updates() {
		}
	}()
	var all []Aside
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case e, ok := <-w.Updates():
			if !ok || e == nil {
				return all, nil
			}
			var a Aside
			if err := json.Unmarshal(e.Value(), &a); err != nil {
				a = Aside{Bucket: quarantine, Key: e.Key(), Revision: e.Revision(), Reason: err.Error(), At: e.Created(), Data: e.Value()}
			}
			all = append(all, a)
		}
	}
}

// writeAll writes the waiting changes, one after the other.
func (b *Bucket[T]) writeAll() {
	pause := firstPause
	for {
		c, ctx := b.next()
		if c == nil {
			select {
			case <-b.s.ctx.Done():
				return
			case <-b.write:
			}
			continue
		}
		launch := b.s.launched()
		revision, err := b.store(ctx, c)
		b.written(c, revision, err)
		if err == nil {
			pause = firstPause
			continue
		}
		if !errors.Is(err, context.Canceled) { // that one has a known reason
			b.s.fails(launch)
		}
		if errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, jetstream.ErrStreamNotFound) {
			b.resync() // the bucket may be gone
		}
		select {
		case <-b.s.ctx.Done():
			return
		case <-time.After(pause):
			pause = min(2*pause, longPause)
		}
	}
}

// next takes the change that has waited longest, or nil while there is none or no connection.
func (b *Bucket[T]) next() (*change[T], context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.live == nil || len(b.order) == 0 || b.s.cfg.Look {
		return nil, nil
	}
	key := b.order[0]
	b.order = b.order[1:]
	b.flight = b.waiting[key]
	delete(b.waiting, key)
	return b.flight, b.live
}

func (b *Bucket[T]) store(ctx context.Context, c *change[T]) (revision uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	key, err := escape(c.key)
	if err != nil {
		return 0, err
	}
	b.mu.Lock()
	kv := b.kv
	unread, is := b.aside[c.key]
	b.mu.Unlock()
	if is {
		// The unreadable record is about to be overwritten.
		a := Aside{b.name, key, unread.revision, "it was overwritten", time.Now().UTC(), unread.raw}
		if err := b.s.quarantine(ctx, a); err != nil {
			return 0, err
		}
	}
	if c.raw != nil {
		return kv.Put(ctx, key, c.raw)
	}
	return 0, kv.Delete(ctx, key) // it does not return the revision
}

// written takes in the answer to a change.
func (b *Bucket[T]) written(c *change[T], revision uint64, err error) {
	b.mu.Lock()
	b.flight = nil
	held := b.held
	b.held = nil
	all := c.stored
	c.stored = nil
	first := false
	if err == nil {
		b.fails(nil)
		poke(b.changed)
		delete(b.aside, c.key)
		old := b.known[c.key]
		if c.raw == nil {
			revision = old.revision // the watch tells the true one soon
		}
		if old.epoch != b.epoch || old.revision <= revision {
			b.known[c.key] = entry[T]{c.value, c.raw, revision, b.epoch, c.raw == nil}
		}
	} else {
		err = b.notYet(err)
		first = b.problem == nil
		b.fails(err)
		if b.waiting[c.key] == nil {
			b.waiting[c.key] = c
			b.order = append(b.order, c.key)
		}
	}
	if held != nil {
		b.take(*held) // unless it is what we have just written, or older
	}
	wake := b.toWake()
	b.mu.Unlock()
	if first {
		b.s.cfg.Log.Error("changes cannot be stored for now, and will be as soon as they can", "server", b.s.where, "err", err)
	}
	for _, stored := range all {
		stored(err)
	}
	wake()
}
