// Package natsd runs a NATS server on loopback, as an external one: it can be stopped, and started again with the same
// address and files.
package natsd

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/earshot-mc/earshot/itest/testkit"
)

// Options are the server's own.
type Options = server.Options

// Server is one server. Its Options are in force from the next Start on.
type Server struct {
	Options Options

	t testing.TB
	s *server.Server
}

// Run starts a server with JetStream in a directory of the test's, on a free port. change may change its options. The
// server stops with the test.
func Run(t testing.TB, change ...func(*Options)) *Server {
	t.Helper()
	s := &Server{t: t, Options: Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(),
	}}
	for _, c := range change {
		c(&s.Options)
	}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Login sets the name and the password that clients need.
func Login(user, password string) func(*Options) {
	return func(o *Options) { o.Username, o.Password = user, password }
}

// Start starts the server again.
func (s *Server) Start() {
	s.t.Helper()
	opts := s.Options // the server writes to its options
	started, err := server.NewServer(&opts)
	if err != nil {
		s.t.Fatal(err)
	}
	started.Start()
	if !started.ReadyForConnections(testkit.Patience) {
		s.t.Fatal("the NATS server does not start")
	}
	s.s, s.Options.Port = started, opts.Port
}

// Stop stops the server, and returns when it has. A second time does nothing.
func (s *Server) Stop() {
	s.s.Shutdown()
	s.s.WaitForShutdown()
}

// URL returns the server's address, without a login.
func (s *Server) URL() string { return fmt.Sprintf("nats://127.0.0.1:%d", s.Options.Port) }
