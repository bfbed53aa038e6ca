// Package store keeps the state that outlives the process: mutes, persistent groups, speakers and declarations, in
// key-value buckets of NATS JetStream. Either a server without any network listener runs in this process, with its files
// below the data directory, or an existing NATS is used, whose other clients may be other Earshots. There is one code
// path for both.
//
// It promises that what it has acknowledged survives the death of the process at any moment; that a record which cannot
// be read is set aside and reported, and never lost; and that while the server cannot be reached, everything that was
// known stays known, what is changed meanwhile is kept and stored later, and [Store.Health] says so.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
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
	Replicas       int // of buckets that are made in a cluster; 0 is 1

	Log *slog.Logger // nil: slog.Default()
}

// Times of the store.
const (
	startTime   = 30 * time.Second // for the embedded server to read its files
	attemptTime = 5 * time.Second  // for one request
	firstPause  = 100 * time.Millisecond
	longPause   = 5 * time.Second // between attempts, at last
	marksTime   = 24 * time.Hour  // how long other nodes may still need to learn that a record was deleted
)

// Store is a connection to the state. Open buckets on it with [OpenBucket]; its methods may be called from any goroutine.
type Store struct {
	cfg    Config
	where  string
	marks  time.Duration  // marksTime
	server *server.Server // nil: external
	lock   *os.File
	nc     *nats.Conn
	js     jetstream.JetStream
	ctx    context.Context // until Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	buckets []bucket
	lost    time.Time           // when the connection broke; zero while there is one
	aside   map[string]struct{} // what was set aside since the start
}

// bucket is what the store needs of a [Bucket] of any type.
type bucket interface {
	disconnected()
	resync()
	state() (waiting int, since time.Time, problem error)
}

// Open starts the embedded server, or connects to the external one, which has to be there. ctx bounds only the opening.
func Open(ctx context.Context, cfg Config) (_ *Store, err error) {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Replicas == 0 {
		cfg.Replicas = 1
	}
	s := &Store{cfg: cfg, marks: marksTime, aside: make(map[string]struct{})}
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
		nats.ReconnectBufSize(-1), // what cannot be sent now must fail now; we keep it ourselves
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
		options = append(options, nats.InProcessServer(s.server))
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
	return s, nil
}

// embed starts the server in this process.
func (s *Store) embed() error {
	dir := s.cfg.Dir
	if dir == "" {
		return errors.New("the store needs a data directory or the URL of a NATS server")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil { // it holds password hashes
		return fmt.Errorf("cannot make the data directory: %w", err)
	}
	var err error
	if s.lock, err = lock(filepath.Join(dir, "lock")); err != nil {
		return err
	}
	s.server, err = server.NewServer(&server.Options{
		ServerName: "earshot", DontListen: true, NoSigs: true, DisableJetStreamBanner: true,
		JetStream: true, StoreDir: dir, SyncAlways: true,
		JetStreamMaxMemory: 16 << 20, JetStreamMaxStore: 4 << 30,
	})
	if err != nil {
		return fmt.Errorf("cannot set up the state server in %s: %w", dir, err)
	}
	s.server.SetLoggerV2(serverLog{s.cfg.Log.With("room", "store")}, false, false, false)
	s.server.Start()
	if !s.server.ReadyForConnections(startTime) {
		return fmt.Errorf("the state server in %s has not started within %v: look for its messages in the log", dir, startTime)
	}
	return nil
}

// external makes the options of a connection to somebody else's server. where names it without secrets.
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

// Close writes what waits, until ctx is done, and ends everything. What could not be written is an error.
func (s *Store) Close(ctx context.Context) error {
	s.flush(ctx)
	waiting := s.Health().Waiting
	s.release()
	if waiting > 0 {
		return fmt.Errorf("%d changes could not be stored on %s", waiting, s.where)
	}
	return nil
}

// flush waits until nothing waits.
func (s *Store) flush(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for s.Health().Waiting > 0 {
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
	if s.server != nil {
		s.server.Shutdown()
		s.server.WaitForShutdown()
	}
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
	s.cfg.Log.Error("the state server is lost: voice goes on with what is known, changes are stored when it is back", "server", s.where, "err", err)
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

// Health is how the state fares.
type Health struct {
	OK      bool
	Where   string    // the server, without secrets
	Problem string    // empty when OK
	Since   time.Time // when the problem began
	Waiting int       // changes that are in force but not stored yet
	Aside   int       // records set aside since the start
}

// Health tells how the state fares. Records that were set aside do not make it bad: they were reported.
func (s *Store) Health() Health {
	s.mu.Lock()
	h := Health{Where: s.where, Aside: len(s.aside)}
	if !s.lost.IsZero() {
		h.Problem, h.Since = "the server cannot be reached", s.lost
	}
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

// serverLog passes on what the embedded server says.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l serverLog) Warnf(format string, v ...any)   { l.log.Warn(fmt.Sprintf(format, v...)) }
func (l serverLog) Fatalf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l serverLog) Errorf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l serverLog) Debugf(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l serverLog) Tracef(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
