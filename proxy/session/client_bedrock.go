package session

import (
	"net"
	"net/netip"
)

// fromGeyser finds out who a player of Bedrock Edition is, from Geyser's data in the handshake. It asks nobody else:
// the Xbox account counts.
func (s *Session) fromGeyser() bool {
	cl := &s.client
	b, peer := s.set().Bedrock, s.peer()
	if b == nil || !b.trusts(peer) {
		why := "no bedrock.key-file is set"
		if b != nil {
			why = "its sender is not in bedrock.trusted"
		}
		s.log.Info("a player of Bedrock Edition is refused: Floodgate's data is not accepted", "why", why)
		return s.refuse(EndBedrockSource, s.because("kick-bedrock"))
	}
	p, err := b.Key.Open(cl.geyser)
	if err != nil {
		s.log.Warn("a player of Bedrock Edition is refused", "error", err)
		return s.refuse(EndBedrockData, s.because("kick-bedrock-data"))
	}
	cl.id, cl.name, cl.online, cl.bedrock = p.ID(), p.Name(b.Prefix), true, true
	if p.Addr.IsValid() && cl.address.Addr() == peer { // no PROXY header said so
		cl.address = netip.AddrPortFrom(p.Addr, 0)
	}
	return true
}

// trusts reports whether Geyser may be at a.
func (b *Bedrock) trusts(a netip.Addr) bool {
	a = a.WithZone("")
	for _, p := range b.Trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// peer returns the address at the other end of the socket, whatever a PROXY header says.
func (s *Session) peer() netip.Addr {
	c := s.client.conn
	if inner, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = inner.NetConn()
	}
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
