// Package store keeps the state that outlives the process: mutes, persistent groups, speakers and declarations, in
// key-value buckets of NATS JetStream. Either a server without any network listener runs in this process, with its
// files below the data directory, or an existing NATS is used, whose other clients may be other Earshots. There is one
// code path for both.
//
// It promises that acknowledged changes survive the death of the process at any moment; that an unreadable record is
// set aside and reported, and never lost; and that while the server cannot be reached, everything known stays known,
// changes are kept and stored later, and [Store.Health] says so.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Config says where the state lives. Without a URL it is Dir.
type Config struct {
	Dir string // data directory of the embedded server, made if it is not there

	URL            string // of an existing NATS: nats://host:4222, tls://…; several are separated by commas
	Credentials    string // file with a NATS user's credentials
	User, Password string
	Token          string
	RootCA         string // file, where the server's certificate is not one that the system trusts
	Certificate    string // files of our own certificate, where the server asks for one
	Key            string
	Look           bool // change nothing: neither store, nor count, nor set aside
	Replicas       int  // of new buckets in a cluster; 0: 1

	Log *slog.Logger // nil: slog.Default()
}

// Times of the store.
const (
	startTime   = 30 * time.Second // for the embedded server to read its files
	attemptTime = 5 * time.Second  // for one request
	firstPause  = 100 * time.Millisecond
	longPause   = 5 * time.Second // between attempts, at last
	marksTime   = 24 * time.Hour  // how long other nodes may still need to learn of a deletion
)

// Store is a connection to the state. Open buckets on it with [OpenBucket]; its methods may be called from any
// goroutine.
type Store struct {
	cfg    Config
	where  string
	marks  time.Duration // marksTime
	lock   *os.File      // of an embedded server's directory
	nc     *nats.Conn
	js     jetstream.JetStream
	ctx    context.Context // until Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	sick  chan struct{} // poked when the embedded server has failed to store something
	stuck chan string   // buckets that it cannot read

	mu       sync.Mutex
	server   *server.Server // nil: external, or being started again
	launches int            // of the embedded server
	trouble  error          // why it cannot be started again
	buckets  []bucket
	lost     time.Time           // when the connection broke; zero while there is one
	aside    map[string]struct{} // records set aside since the start
	damage   []string            // parts found missing or damaged since the start
	restored int                 // of these, records that came back
	missing  int                 // and those that did not
}

// bucket is what the store needs of a [Bucket] of any type.
type bucket interface {
	disconnected()
	resync()
	state() (waiting int, since time.Time, problem error)
	unstored() []string
	export() Section
	restore(ctx context.Context, rows []Row) (taken int, err error)
}

// Open starts the embedded server, or connects to the external one, which has to be there. ctx bounds only the opening.
func Open(ctx context.Context, cfg Config) (_ *Store, err error) {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Replicas == 0 {
		cfg.Replicas = 1
	}
	s := &Store{cfg: cfg, marks: marksTime, aside: make(map[string]struct{}), sick: make(chan struct{}, 1), stuck: make(chan string)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	options := []nats.Option{
		nats.Name("earshot"),
		nats.Timeout(attemptTime),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(firstPause),
		nats.ReconnectJitter(firstPause, firstPause),
		nats.ReconnectBufSize(-1), // a write that cannot go now must fail now; we keep it ourselves
		nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(10 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(s.disconnected),
		nats.ReconnectHandler(s.reconnected),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { cfg.Log.Debug("state server", "err", err) }),
	}
	target := ""
	if cfg.URL == "" {
		if err := s.embed(); err != nil {
			return nil, err
		}
		s.where = "embedded in " + cfg.Dir
		options = append(options, nats.InProcessServer(s))
	} else {
		var more []nats.Option
		if target, s.where, more, err = external(&cfg); err != nil {
			return nil, err
		}
		options = append(options, more...)
	}
	if s.nc, err = nats.Connect(target, options...); err != nil {
		return nil, fmt.Errorf("cannot connect to the state server %s: %w", s.where, err)
	}
	if s.js, err = jetstream.New(s.nc); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if _, err := s.js.AccountInfo(ctx); err != nil {
		return nil, fmt.Errorf("the state server %s has no JetStream for us, which has to be switched on: %w", s.where, err)
	}
	if s.embedded() {
		if err := s.adopt(ctx); err != nil {
			return nil, err
		}
		s.wg.Go(s.tend)
	}
	return s, nil
}

// external makes the options of a connection to an external server. where names it without secrets.
func external(cfg *Config) (target, where string, options []nats.Option, err error) {
	var hosts []string
	for raw := range strings.SplitSeq(cfg.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(raw))
		if err != nil || u.Host == "" {
			// Without the text, which may hold a password.
			return "", "", nil, errors.New("the URL of the state server is none: write nats://host:4222, several separated by commas")
		}
		hosts = append(hosts, u.Scheme+"://"+u.Host)
	}
	if cfg.Credentials != "" {
		options = append(options, nats.UserCredentials(cfg.Credentials))
	}
	if cfg.User != "" {
		options = append(options, nats.UserInfo(cfg.User, cfg.Password))
	}
	if cfg.Token != "" {
		options = append(options, nats.Token(cfg.Token))
	}
	if cfg.RootCA != "" {
		options = append(options, nats.RootCAs(cfg.RootCA))
	}
	if cfg.Certificate != "" {
		options = append(options, nats.ClientCert(cfg.Certificate, cfg.Key))
	}
	return cfg.URL, strings.Join(hosts, ","), options, nil
}

// hopeTime bounds Close's wait for a server that stores nothing.
const hopeTime = 3 * time.Second

// LostError names changes that were in force and are lost, since they could not be stored.
type LostError struct {
	Where   string
	Changes []string // each a bucket, a key and the change
	Problem string
}

// Error names every change, so that a person can make them again.
func (e *LostError) Error() string {
	return fmt.Sprintf("%d changes are lost, since they could not be stored on %s (%s): %s", len(e.Changes), e.Where, e.Problem, strings.Join(e.Changes, "; "))
}

// Close writes the waiting changes, until ctx is done, and ends everything. A [LostError] has the rest.
func (s *Store) Close(ctx context.Context) error {
	s.flush(ctx)
	problem := s.Health().Problem
	s.mu.Lock()
	buckets := s.buckets
	s.mu.Unlock()
	s.cancel() // nothing is written from now on
	s.wg.Wait()
	var lost []string
	for _, b := range buckets {
		lost = append(lost, b.unstored()...)
	}
	s.release()
	if len(lost) > 0 {
		return &LostError{s.where, lost, problem}
	}
	return nil
}

// flush waits until nothing waits.
func (s *Store) flush(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	hope := time.Now().Add(hopeTime)
	for h := s.Health(); h.Waiting > 0; h = s.Health() {
		if !h.OK && time.Now().After(hope) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Store) release() {
	s.cancel()
	s.wg.Wait()
	if s.nc != nil {
		s.nc.Close()
	}
	s.halt()
	if s.lock != nil {
		s.lock.Close()
	}
}

func (s *Store) disconnected(_ *nats.Conn, err error) {
	if s.ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	if s.lost.IsZero() {
		s.lost = time.Now()
	}
	buckets := s.buckets
	s.mu.Unlock()
	if s.embedded() { // it is being started again
		s.cfg.Log.Warn("the state server is started again: changes meanwhile are kept in memory", "server", s.where)
	} else {
		s.cfg.Log.Error("the state server is lost: voice goes on with the last known state, changes are stored when it is back", "server", s.where, "err", err)
	}
	for _, b := range buckets {
		b.disconnected()
	}
}

func (s *Store) reconnected(*nats.Conn) {
	s.mu.Lock()
	down := time.Since(s.lost).Round(time.Millisecond)
	s.lost = time.Time{}
	buckets := s.buckets
	s.mu.Unlock()
	s.cfg.Log.Info("the state server is back", "server", s.where, "after", down)
	for _, b := range buckets {
		b.resync()
	}
}

// Health says how the state fares.
type Health struct {
	OK      bool
	Where   string    // the server, without secrets
	Problem string    // empty when OK
	Since   time.Time // when the problem began
	Waiting int       // changes that are in force but not stored yet
	Aside   int       // records set aside since the start

	// Damage that the start found.
	Restored int      // records that came back, from a copy or from memory
	Missing  int      // records that did not
	Damage   []string // a line each, the first of them
}

// Health returns how the state fares. Records that were set aside do not make it bad: they were reported.
func (s *Store) Health() Health {
	s.mu.Lock()
	h := Health{Where: s.where, Aside: len(s.aside)}
	if !s.lost.IsZero() {
		h.Problem, h.Since = "the server cannot be reached", s.lost
		if s.trouble != nil {
			h.Problem = s.trouble.Error()
		}
	}
	h.Restored, h.Missing, h.Damage = s.restored, s.missing, slices.Clone(s.damage)
	buckets := s.buckets
	s.mu.Unlock()
	for _, b := range buckets {
		waiting, since, problem := b.state()
		h.Waiting += waiting
		if problem != nil && h.Problem == "" {
			h.Problem, h.Since = problem.Error(), since
		}
	}
	h.OK = h.Problem == ""
	return h
}

// maxDamage bounds the lines about damage that are kept.
const maxDamage = 20

// found notes damage of a bucket: the keys of records that came back, and how many did not, with hints about them.
func (s *Store) found(bucket string, back []string, missing int, hints []string) {
	if len(back) == 0 && missing == 0 {
		return
	}
	s.mu.Lock()
	s.restored += len(back)
	s.missing += missing
	s.mu.Unlock()
	if missing > 0 {
		s.note(fmt.Sprintf("%s: %d records are missing; damaged in the copy: %v", bucket, missing, hints))
	}
	for _, key := range back {
		s.note(fmt.Sprintf("%s: %s was missing or damaged, and is back", bucket, key))
	}
	if len(back) > 0 {
		s.cfg.Log.Error("records were missing or damaged, and are back from the copy", "bucket", bucket, "records", len(back), "keys", back[:min(len(back), maxDamage)])
	}
	if missing > 0 {
		s.cfg.Log.Error("records are missing, and everything else is in force: put them back with earshot state import FILE, a file that earshot state export has written, or make them again",
			"bucket", bucket, "records", missing, "damaged", hints, "where", s.where)
	}
}

// note keeps a line about damage for [Store.Health].
func (s *Store) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.damage) < maxDamage {
		s.damage = append(s.damage, line)
	}
}

// report counts a record that was set aside and tells whether that is new.
func (s *Store) report(a Aside) (first bool) {
	id := fmt.Sprint(a.Bucket, ".", a.Key, ".", a.Revision)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.aside[id]
	s.aside[id] = struct{}{}
	return !known
}

// keyValue finds a bucket on the server, or makes it.
func (s *Store) keyValue(ctx context.Context, name string) (kv jetstream.KeyValue, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	kv, err = s.js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = s.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: name, Description: "Earshot", History: 1, Storage: jetstream.FileStorage, Replicas: s.cfg.Replicas,
			MaxValueSize: 2 * MaxRecord, // one in quarantine is longer
		})
		if errors.Is(err, jetstream.ErrBucketExists) { // another node was faster
			kv, err = s.js.KeyValue(ctx, name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", name, err)
	}
	return kv, nil
}
