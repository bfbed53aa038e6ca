package speaker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Bounds of a [Book]: its speakers, of which one client is told of 32 at most, and the players on a record's list.
const (
	MaxBook  = 256
	MaxAllow = 1024
)

// Record is a speaker of a [Book], as it is stored.
type Record struct {
	ID     uuid.UUID   `json:"id"`
	Name   string      `json:"name"`
	Server string      `json:"server"`
	World  string      `json:"world"`
	X      float64     `json:"x"`
	Y      float64     `json:"y"`
	Z      float64     `json:"z"`
	Volume float64     `json:"volume"`
	Range  float64     `json:"range"`
	Allow  []uuid.UUID `json:"allow"` // null: everybody

	// What it plays until further orders: a file over and over, or a player's microphone.
	Loop  string    `json:"loop,omitempty"`
	Relay uuid.UUID `json:"relay,omitzero"`
}

// Key returns the channel's id.
func (r Record) Key() string { return r.ID.String() }

// Check returns what is wrong with the record.
func (r Record) Check() error {
	if r.ID == uuid.Nil {
		return errors.New("speaker: a record needs an id")
	}
	if len(r.Allow) > MaxAllow {
		return fmt.Errorf("speaker: %d players may hear it, and %d are the most that can be named", len(r.Allow), MaxAllow)
	}
	s := r.spec()
	return s.check()
}

func (r *Record) spec() Spec {
	return Spec{
		ID: r.ID, Name: r.Name, Owner: bookOwner, Backend: r.Server, World: r.World, X: r.X, Y: r.Y, Z: r.Z,
		Volume: r.Volume, Range: r.Range, Allow: r.Allow,
	}
}

// bookOwner is the owner of a book's channels.
const bookOwner = "administrators"

// State is a speaker of a [Book] and its present sound.
type State struct {
	Record
	File string    // empty: none
	From uuid.UUID // the player whose microphone it carries; zero: none
	// Why the last file ended too soon; empty: it did not.
	Failed string
}

// Book holds the speakers of administrators, by name; case does not matter. Its methods may be called from any
// goroutine.
type Book struct {
	set     *Set
	changed func(put []Record, gone []uuid.UUID)

	// Ended is called with files that could not be played to their end, in a goroutine of its own. Set it before the
	// first of them plays.
	Ended func(speaker, file string, err error)
	// Convert handles files that cannot be sent as they are. It may be set as Ended may; nil: nobody does.
	Convert Converter

	mu     sync.Mutex
	sounds Sounds
	list   []*entry // as they were made
}

type entry struct {
	Record
	c  *Channel
	in *Input // the last one started
	as string // the file's name
	// Why in ended too soon; nil: it did not.
	failed error
}

// NewBook returns a book without speakers; it plays files of sounds. changed is called with what is to be stored, in
// order; it must not block, nor call the book. It may be nil.
func NewBook(set *Set, sounds Sounds, changed func(put []Record, gone []uuid.UUID)) *Book {
	if changed == nil {
		changed = func([]Record, []uuid.UUID) {}
	}
	return &Book{set: set, sounds: sounds, changed: changed}
}

// SetSounds sets the directory of files from now on. The present sound goes on.
func (b *Book) SetSounds(s Sounds) {
	b.mu.Lock()
	b.sounds = s
	b.mu.Unlock()
}

func (b *Book) from() Sounds {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sounds
}

// Sounds lists the files that can be played.
func (b *Book) Sounds() []string { return b.from().Names(b.Convert != nil) }

// All lists the speakers in the order in which they were made.
func (b *Book) All() (all []State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.list {
		s := State{Record: e.Record}
		s.Allow = slices.Clone(e.Allow)
		if e.in != nil && e.c.Input() == e.in {
			s.File, s.From = e.as, e.in.Origin()
		} else if e.failed != nil {
			s.Failed = e.failed.Error()
		}
		all = append(all, s)
	}
	return all
}

// Put makes a speaker, or changes the one of that name: its place, loudness and listeners. Its id stays, and its sound
// goes on.
func (b *Book) Put(r Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.find(r.Name); e != nil {
		r.ID, r.Name, r.Loop, r.Relay = e.ID, e.Name, e.Loop, e.Relay
		if err := r.Check(); err != nil {
			return err
		}
		if err := e.c.Change(r.spec()); err != nil {
			return err
		}
		e.Record = r
		b.changed([]Record{e.Record}, nil)
		return nil
	}
	r.ID, r.Loop, r.Relay = uuid.New(), "", uuid.Nil
	if err := r.Check(); err != nil {
		return err
	}
	if err := b.open(r); err != nil {
		return err
	}
	b.changed([]Record{r}, nil)
	return nil
}

func (b *Book) open(r Record) error {
	if len(b.list) >= MaxBook {
		return fmt.Errorf("speaker: there are %d already; remove one first", MaxBook)
	}
	c, err := b.set.Open(r.spec())
	if err != nil {
		return err
	}
	r.Allow = slices.Clone(r.Allow)
	b.list = append(b.list, &entry{Record: r, c: c})
	return nil
}

func (b *Book) find(name string) *entry {
	for _, e := range b.list {
		if strings.EqualFold(e.Name, name) {
			return e
		}
	}
	return nil
}

// Remove closes a speaker, and tells whether there was one.
func (b *Book) Remove(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.find(name)
	if e == nil {
		return false
	}
	b.drop(e)
	b.changed(nil, []uuid.UUID{e.ID})
	return true
}

func (b *Book) drop(e *entry) {
	e.c.Close()
	b.list = slices.DeleteFunc(b.list, func(o *entry) bool { return o == e })
}

// Play plays a file of the directory of sounds in place of the present sound, and returns its length, or 0 where that
// is not known. With loop it plays over and over.
func (b *Book) Play(name, file string, loop bool) (time.Duration, error) {
	f, err := b.from().openWithin(file, loop, b.Convert)
	if err != nil {
		return 0, err
	}
	length := f.Length()
	repeat := ""
	if loop {
		repeat = file
	}
	err = b.start(name, func(e *entry) (err error) {
		return b.play(e, f, file)
	}, repeat, uuid.Nil)
	if err != nil {
		f.Close() // harmless a second time
		return 0, err
	}
	return length, nil
}

// Relay plays a player's microphone, in place of the present sound.
func (b *Book) Relay(name string, player uuid.UUID) error {
	return b.start(name, func(e *entry) (err error) {
		e.in, err = e.c.Relay(player)
		e.as = ""
		return err
	}, "", player)
}

func (b *Book) start(name string, begin func(*entry) error, loop string, relay uuid.UUID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.find(name)
	if e == nil {
		return fmt.Errorf("speaker: there is none of the name %q", name)
	}
	e.failed = nil
	if err := begin(e); err != nil {
		return err
	}
	b.keep(e, loop, relay)
	return nil
}

// play starts a file and waits for its end in the background. b.mu is held.
func (b *Book) play(e *entry, f Sound, file string) error {
	in, err := e.c.Play(f)
	if err != nil {
		return err
	}
	e.in, e.as = in, file
	go func() {
		err := in.Err()
		if err == nil || errors.Is(err, ErrStopped) {
			return
		}
		b.mu.Lock()
		if e.in == in && b.byID(e.ID) == e {
			e.failed = err
			b.keep(e, "", uuid.Nil) // else it would fail at every start
		}
		b.mu.Unlock()
		if b.Ended != nil {
			b.Ended(e.Name, file, err)
		}
	}()
	return nil
}

// keep notes what a speaker goes on to play.
func (b *Book) keep(e *entry, loop string, relay uuid.UUID) {
	if e.Loop != loop || e.Relay != relay {
		e.Loop, e.Relay = loop, relay
		b.changed([]Record{e.Record}, nil)
	}
}

// Stop ends a speaker's sound, and takes back the queued frames. It tells whether anything played.
func (b *Book) Stop(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.find(name)
	if e == nil {
		return false
	}
	e.failed = nil
	b.keep(e, "", uuid.Nil)
	in := e.c.Input()
	if in == nil {
		return false
	}
	in.Stop()
	return true
}

// Apply takes in stored records, without telling changed of them. The error names those that it could not take.
func (b *Book) Apply(put []Record, gone []uuid.UUID) error {
	return b.Take(func() ([]Record, []uuid.UUID) { return put, gone })
}

// Take does as [Book.Apply] with what others have stored. It calls news while nobody changes the book, so that its
// result is older than any later call of changed.
func (b *Book) Take(news func() (put []Record, gone []uuid.UUID)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	put, gone := news()
	var faults []error
	for _, id := range gone {
		if e := b.byID(id); e != nil {
			b.drop(e)
		}
	}
	for _, r := range put {
		if err := b.take(r); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", r.Name, err))
		}
	}
	return errors.Join(faults...)
}

func (b *Book) byID(id uuid.UUID) *entry {
	for _, e := range b.list {
		if e.ID == id {
			return e
		}
	}
	return nil
}

func (b *Book) take(r Record) error {
	if err := r.Check(); err != nil {
		return err
	}
	e := b.byID(r.ID)
	if other := b.find(r.Name); other != nil && other != e {
		return errors.New("speaker: there is another one of that name")
	}
	var before Record
	if e == nil {
		if err := b.open(r); err != nil {
			return err
		}
		e = b.list[len(b.list)-1]
	} else {
		if err := e.c.Change(r.spec()); err != nil {
			return err
		}
		before = e.Record
	}
	e.Record = r
	var err error
	switch {
	case r.Loop == before.Loop && r.Relay == before.Relay:
	case r.Loop != "":
		var f Sound
		if f, err = b.sounds.openWithin(r.Loop, true, b.Convert); err == nil {
			if err = b.play(e, f, r.Loop); err != nil {
				f.Close()
			}
		}
	case r.Relay != uuid.Nil:
		e.as = ""
		e.in, err = e.c.Relay(r.Relay)
	default:
		if in := e.c.Input(); in != nil {
			in.Stop()
		}
	}
	return err
}
