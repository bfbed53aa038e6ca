package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// Times of the embedded server.
const (
	tryAgain   = time.Second      // between attempts to get it going again
	complain   = time.Minute      // between log lines about that
	stuckTime  = 10 * time.Second // bounds the reading of a bucket; beyond, its files are taken for damaged
	probeBytes = 256 << 10        // room that must be there before another try
)

// ErrInUse is the error of a directory that another process has.
var ErrInUse = errors.New("in use by another process")

// InUse tells whether a process has the directory.
func InUse(dir string) bool {
	if _, err := os.Stat(filepath.Join(dir, "lock")); err != nil {
		return false
	}
	f, err := lock(filepath.Join(dir, "lock"))
	if err == nil {
		f.Close()
	}
	return errors.Is(err, ErrInUse)
}

func (s *Store) embedded() bool { return s.cfg.URL == "" }

// embed starts the server in this process. It moves away files that the server cannot start with; their content comes
// back from the copies.
func (s *Store) embed() error {
	dir := s.cfg.Dir
	if dir == "" {
		return errors.New("the store needs a data directory or the URL of a NATS server")
	}
	if err := os.MkdirAll(filepath.Join(dir, copiesFolder), 0o700); err != nil { // it holds password hashes
		return fmt.Errorf("cannot make the data directory: %w", err)
	}
	var err error
	if s.lock, err = lock(filepath.Join(dir, "lock")); err != nil {
		return err
	}
	left, _ := filepath.Glob(copyPath(dir, "*") + ".new*") // by a program that was killed while it wrote one
	for _, file := range left {
		os.Remove(file)
	}
	if err := s.probe(); err != nil {
		return fmt.Errorf("nothing can be stored in %s: %w; make room there, or let Earshot write there", dir, err)
	}
	err = s.launch()
	if err == nil {
		return nil
	}
	if err := s.replace(serverFolder, err); err != nil {
		return err
	}
	return s.launch()
}

// serverFolder is where the server has its files, below the directory.
const serverFolder = "jetstream"

func streamFolder(bucket string) string {
	return filepath.Join(serverFolder, server.DEFAULT_GLOBAL_ACCOUNT, "streams", "KV_"+bucket)
}

// launch starts a server on the present files.
func (s *Store) launch() error {
	dir := s.cfg.Dir
	// The index would spare the server reading its files, and so finding damage.
	indexes, _ := filepath.Glob(filepath.Join(dir, streamFolder("*"), "msgs", "index.db"))
	for _, path := range indexes {
		os.Remove(path)
	}
	srv, err := server.NewServer(&server.Options{
		ServerName: "earshot", DontListen: true, NoSigs: true, DisableJetStreamBanner: true,
		JetStream: true, StoreDir: dir, SyncAlways: true,
		JetStreamMaxMemory: 16 << 20, JetStreamMaxStore: 4 << 30,
	})
	if err != nil {
		return fmt.Errorf("cannot set up the state server in %s: %w", dir, err)
	}
	said := &serverLog{log: s.cfg.Log.With("room", "store"), ill: func() { poke(s.sick) }}
	srv.SetLoggerV2(said, false, false, false)
	srv.Start()
	if said.fatal.Load() || !srv.JetStreamEnabled() || !srv.ReadyForConnections(startTime) {
		srv.Shutdown()
		srv.WaitForShutdown()
		why := "look for its messages in the log"
		if last := said.last.Load(); last != nil {
			why = *last
		}
		return fmt.Errorf("the state server in %s has not started: %s", dir, why)
	}
	s.mu.Lock()
	s.server = srv
	s.launches++
	s.mu.Unlock()
	return nil
}

// halt ends the server.
func (s *Store) halt() {
	s.mu.Lock()
	srv := s.server
	s.server = nil
	s.mu.Unlock()
	if srv != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
	}
}

// replace moves files away that the server cannot use.
func (s *Store) replace(what string, reason error) error {
	from := filepath.Join(s.cfg.Dir, what)
	to := filepath.Join(s.cfg.Dir, "damaged-"+time.Now().UTC().Format("20060102-150405.000"), what)
	err := os.MkdirAll(filepath.Dir(to), 0o700)
	if err == nil {
		err = os.Rename(from, to)
	}
	if err != nil {
		return fmt.Errorf("%w; its files are damaged, and could not be moved away: %w", reason, err)
	}
	s.note(fmt.Sprintf("files of the state server were damaged, and are moved to %s", to))
	s.cfg.Log.Error("files of the state server are damaged and were moved away: their records come back from the copies",
		"files", to, "copies", filepath.Join(s.cfg.Dir, copiesFolder), "reason", reason)
	return nil
}

// InProcessConn implements nats.InProcessConnProvider with the present server.
func (s *Store) InProcessConn() (net.Conn, error) {
	s.mu.Lock()
	srv := s.server
	s.mu.Unlock()
	if srv == nil {
		return nil, errors.New("the state server is being started again")
	}
	return srv.InProcessConn()
}

// probe tells whether anything can be stored.
func (s *Store) probe() error {
	path := filepath.Join(s.cfg.Dir, "probe")
	defer os.Remove(path)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, probeBytes)); err != nil {
		return err
	}
	return f.Sync()
}

// fails notes that the server of a launch has not stored something: after one failed write it stores nothing any more.
func (s *Store) fails(launch int) {
	s.mu.Lock()
	same := launch == s.launches
	s.mu.Unlock()
	if same && s.embedded() {
		poke(s.sick)
	}
}

func (s *Store) launched() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.launches
}

// tend restarts the server whenever it can store nothing any more, as after a full disk.
func (s *Store) tend() {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.sick:
			s.mend(func() error { return nil })
		case b := <-s.stuck:
			s.mend(func() error { return s.replace(streamFolder(b), errors.New("the bucket "+b+" cannot be read")) })
		}
	}
}

// mend restarts the server as soon as there is room. It calls first while the server is down.
func (s *Store) mend(first func() error) {
	s.halt()
	began, said, launches := time.Now(), time.Time{}, 0
	for {
		err := first()
		if err == nil {
			first = func() error { return nil }
			err = s.probe()
		}
		if err == nil {
			if err = s.launch(); err == nil {
				break
			}
			if launches++; launches == 5 { // there is room, and yet
				first = func() error { return s.replace(serverFolder, err) }
			}
		}
		s.mu.Lock()
		s.trouble = err
		if s.lost.IsZero() {
			s.lost = began
		}
		s.mu.Unlock()
		if now := time.Now(); now.Sub(said) >= complain {
			said = now
			s.cfg.Log.Error("nothing can be stored: everything goes on from memory, and changes are stored as soon as possible; a restart before that loses them",
				"where", s.where, "err", err)
		}
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(tryAgain):
		}
	}
	s.mu.Lock()
	s.trouble = nil
	s.mu.Unlock()
	select { // earlier failures say nothing now
	case <-s.sick:
	default:
	}
	s.cfg.Log.Info("the state server runs again", "where", s.where, "after", time.Since(began).Round(time.Millisecond))
}

// adopt makes the server take back streams with a damaged description, which it would leave out with all their records.
// Call it once the server runs, before any bucket is opened.
func (s *Store) adopt(ctx context.Context) error {
	folders, _ := filepath.Glob(filepath.Join(s.cfg.Dir, streamFolder(prefix+"*")))
	var left []string
	for _, folder := range folders {
		if _, err := s.js.Stream(ctx, filepath.Base(folder)); errors.Is(err, jetstream.ErrStreamNotFound) {
			left = append(left, folder)
		}
	}
	if len(left) == 0 {
		return nil
	}
	s.note(fmt.Sprintf("the descriptions of %d buckets were damaged, and are rewritten", len(left)))
	s.cfg.Log.Error("descriptions of buckets are damaged and are rewritten", "buckets", left)
	s.halt()
	for _, folder := range left {
		for _, name := range []string{server.JetStreamMetaFile, server.JetStreamMetaFileSum} {
			os.Remove(filepath.Join(folder, name))
		}
	}
	return s.launch()
}

// serverLog passes on the embedded server's log.
type serverLog struct {
	log   logger
	last  atomic.Pointer[string] // of its complaints
	ill   func()                 // called when it stores nothing any more
	fatal atomic.Bool            // it has given up
}

type logger interface {
	Debug(msg string, args ...any)
	Warn(msg string, args ...any)
}

func (l *serverLog) complain(format string, v []any) {
	text := fmt.Sprintf(format, v...)
	l.last.Store(&text)
	if strings.Contains(text, "failed to store") { // its callers get no answer, and would wait for one
		l.ill()
	}
	l.log.Warn("state server: " + text) // the consequences are logged apart
}

func (l *serverLog) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Warnf(format string, v ...any) {
	l.log.Warn("state server: " + fmt.Sprintf(format, v...))
}
func (l *serverLog) Fatalf(format string, v ...any) {
	l.complain(format, v)
	l.fatal.Store(true)
}

func (l *serverLog) Errorf(format string, v ...any) { l.complain(format, v) }
func (l *serverLog) Debugf(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Tracef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
