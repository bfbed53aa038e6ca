package itest

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/earshot-mc/earshot/itest/peer"
	"github.com/earshot-mc/earshot/itest/testkit"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
	"github.com/earshot-mc/earshot/voice/client"
)

// rejoin has so many players at one address ping, join and connect voice, all at once, as after a restart.
func rejoin(t *testing.T, p *program, players int) {
	t.Helper()
	var all sync.WaitGroup
	x := &portTest{p: p}
	for i := range players {
		all.Go(func() {
			x.ping(t, dial(t, p.addr, "127.0.9.1"), 47)
		})
		all.Go(func() {
			name := fmt.Sprintf("Pupil%d", i)
			w := newWire(t, dial(t, p.addr, "127.0.9.1"), proto.V1_8)
			write(t, w, hello(proto.V1_8, "localhost", packet.IntentLogin), loginStart(proto.V1_8, name))
			for {
				got, body := w.next(proto.Login)
				if got == proto.SetCompression {
					n, _ := packet.ParseSetCompression(body)
					w.r.SetCompression(n)
					w.w.SetCompression(n)
					continue
				}
				if got != proto.LoginSuccess {
					t.Errorf("%s is answered %q", name, body)
					return
				}
				break
			}
			w.until(proto.JoinGame)
			c, err := client.Dial(t.Context(), client.Config{URL: "http://" + p.addr, Token: w.invited().Token, Player: offlineID(name)})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			t.Cleanup(func() { c.Close() })
		})
	}
	all.Wait()
	p.counts("earshot_players", float64(players))
	p.counts("earshot_voice_sockets", float64(players))
}

// TestHousehold: five at one address who come back at once get in, with voice, and nothing need be set for it; a
// school's thirty with what earshot.yml says of them.
func TestHousehold(t *testing.T) {
	t.Setenv("EARSHOT_LIMITS_EXEMPT", "[127.0.0.1]") // where /metrics is read from, and they are not
	rejoin(t, start(t, "online: false\n"), 5)
	t.Setenv("EARSHOT_LIMITS_CONNECTIONS", "{per-second: 20, burst: 120}")
	t.Setenv("EARSHOT_LIMITS_LOGINS", "{per-second: 5, burst: 40}")
	t.Setenv("EARSHOT_LIMITS_STATUS", "{per-second: 20, burst: 120}")
	rejoin(t, start(t, "online: false\n"), 30)
}

// TestAnswersThatNobodyReads: they end by themselves, one network has only so many of them, others still join, and the
// program stops in time; over TLS as well.
func TestAnswersThatNobodyReads(t *testing.T) {
	certFile, keyFile, roots := certificate(t)
	t.Setenv("EARSHOT_LIMITS_EXEMPT", "[127.0.0.1]")
	t.Setenv("EARSHOT_LIMITS_CONNECTIONS", "{per-second: 1000, burst: 1000}")
	t.Setenv("EARSHOT_LIMITS_HTTP", "320")
	p := start(t, fmt.Sprintf("online: false\ntls: {certificate: %q, key: %q}\n", certFile, keyFile))
	request := []byte(strings.Repeat("GET /x HTTP/1.1\r\nHost: h\r\n\r\n", 200000))
	stuff := func(c net.Conn) {
		c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
		c.Write(request) // until neither side takes anything
	}
	var conns sync.WaitGroup
	for i := range 40 {
		conns.Go(func() {
			c := dial(t, p.addr, "127.0.8.1")
			c.SetReadBuffer(4096)
			if i%4 == 0 {
				stuff(tls.Client(c, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}))
				return
			}
			stuff(c)
		})
	}
	conns.Wait()
	// Of the 40 a sixteenth of 320 are left.
	p.counts(`earshot_http_closed_total{reason="crowded"}`, 20)
	if !strings.Contains(p.log.String(), "limits.http") {
		t.Error("the log says nothing of it")
	}
	logIn(t, p.addr, "Ann").until(proto.JoinGame)
	before := time.Now()
	p.stop()
	if took := time.Since(before); took > 5*time.Second {
		t.Errorf("it stopped after %v", took)
	}
}

// TestUnreadAnswersEnd: nobody holds a connection by not reading.
func TestUnreadAnswersEnd(t *testing.T) {
	p := start(t, "online: false\n")
	before := p.metric("process_open_fds")
	var conns []net.Conn
	for range 10 {
		c := dial(t, p.addr, "")
		c.SetReadBuffer(4096)
		c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
		c.Write([]byte(strings.Repeat("GET /x HTTP/1.1\r\nHost: h\r\n\r\n", 200000)))
		conns = append(conns, c)
	}
	if n := p.metric("process_open_fds"); n < before+5 {
		t.Fatalf("%v connections are held: this is no test", n-before)
	}
	testkit.Until(t, "the connections to end", func() bool { return p.metric("process_open_fds") <= before+1 })
	for _, c := range conns {
		c.Close()
	}
}

// TestStrangersCannotKeepOthersOut: connections that never finish a handshake take all places, from hundreds of
// networks, and whoever comes gets in.
func TestStrangersCannotKeepOthersOut(t *testing.T) {
	t.Setenv("EARSHOT_LIMITS_EXEMPT", "[127.0.0.1]")
	t.Setenv("EARSHOT_LIMITS_CONNECTIONS", "{per-second: 1000, burst: 1000}")
	t.Setenv("EARSHOT_LIMITS_PENDING", "64")
	p := start(t, "online: false\n")
	for i := range 300 {
		from := fmt.Sprintf("127.%d.%d.1", 2+i%5, i)
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		write(t, c, []byte("\xff\x01\x00a")) // a handshake that never ends
		if i%60 == 59 {
			time.Sleep(50 * time.Millisecond)
			logIn(t, p.addr, fmt.Sprintf("Ann%d", i)).until(proto.JoinGame)
		}
	}
	if p.metric(`earshot_connections_ended_total{why="crowded"}`) < 200 {
		t.Error("the places were not full: that was no test")
	}
	if n := strings.Count(p.log.String(), `setting=limits.pending`); n != 1 {
		t.Errorf("%d lines of the log name limits.pending", n)
	}
	p.counts("earshot_players", 5)
}

// TestTurnedAwayIsSaid: whoever is turned away, the log says why, once for a crowd, and names the setting.
func TestTurnedAwayIsSaid(t *testing.T) {
	t.Setenv("EARSHOT_LIMITS_CONNECTIONS", "{per-second: 1000, burst: 1000}")
	p := start(t, "online: false\nunknown-hosts: refuse\nhosts: {play.example.net: {}}\nproxy-protocol: {trusted: [127.0.0.3]}\n")
	for range 5 {
		for _, head := range []string{"PROXY TCP4 203.0.113.7 127.0.0.1 1 2\r\n", "PROXY UNKNOWN\r\n", "\x16\x03\x01\x00\x10"} {
			c := dial(t, p.addr, "")
			write(t, c, []byte(head))
			ended(t, c)
		}
		c := dial(t, p.addr, "127.0.0.3")
		write(t, c, []byte("PROXY TCP9 x\r\n"))
		ended(t, c)
		if r := refusal(t, p.addr, 47, "Ann"); !strings.Contains(r, "address") {
			t.Errorf("told %s", r)
		}
		get(t, through(t, "", nil, nil), "http://"+p.addr+"/voice")
	}
	for _, want := range []string{
		`untrusted`, `setting=tls`, `cannot be read" room=connection setting=proxy-protocol.trusted`, `setting="unknown-hosts, hosts"`, `that is none; a reverse proxy`,
	} {
		if want == "untrusted" {
			want = `that is not trusted" room=connection setting=proxy-protocol.trusted from=127.0.0.1`
		}
		testkit.Until(t, "the log to say "+want, func() bool { return strings.Contains(p.log.String(), want) })
		if n := strings.Count(p.log.String(), want); n != 1 {
			t.Errorf("%d lines have %s", n, want)
		}
	}
	// A family of addresses that cannot have connected here says nothing, and is no reason to turn anybody away.
	c := dial(t, p.addr, "127.0.0.3")
	write(t, c, append([]byte("\r\n\r\n\x00\r\nQUIT\n\x21\x31\x00\xd8"), make([]byte, 216)...), []byte("GET /healthz HTTP/1.0\r\n\r\n"))
	c.SetDeadline(time.Now().Add(peer.Patience))
	if b, _ := io.ReadAll(c); !strings.HasPrefix(string(b), "HTTP/1.0 200 ") {
		t.Errorf("a header of a Unix socket is answered with %.80q", b)
	}
}
