package session

import (
	"context"
	"errors"
	"time"

	"github.com/earshot-mc/earshot/proxy/auth"
	"github.com/earshot-mc/earshot/proxy/packet"
	"github.com/earshot-mc/earshot/proxy/proto"
)

// authenticate finds out from the session server who the client is. It forgets what the client claimed, except the name
// for the look-up.
func (s *Session) authenticate(a *auth.Auth, start packet.LoginStart) bool {
	cl := &s.client
	if !s.nameAllowed(start.Name) {
		return s.refuse(EndBadName, s.because("kick-name"))
	}
	l, err := a.Begin(cl.protocol, start)
	if err != nil {
		return s.unverified(err)
	}
	id, _ := cl.version.ID(proto.Login, proto.Clientbound, proto.EncryptionBegin)
	if err := cl.w.Packet(id, packet.AppendEncryptionRequest(nil, cl.protocol, l.Request())); err != nil {
		return s.broke(err)
	}
	body, ok := s.next(proto.EncryptionBegin)
	if !ok {
		return false
	}
	response, err := packet.ParseEncryptionResponse(cl.protocol, body)
	if err != nil {
		return s.misfit(err.Error())
	}
	s.core.cfg.Pending.Busy(&s.place) // the session server has the word
	ctx, cancel := context.WithDeadline(s.ctx, s.timers.born.Add(s.set().Timeouts.Login))
	defer cancel()
	secret, err := l.Answer(ctx, response)
	if err != nil {
		// The client encrypts by now and we cannot: it would not understand a reason.
		s.ending = EndEncryption
		s.log.Debug("encryption failed", "error", err)
		return false
	}
	if err := errors.Join(cl.r.SetCipher(secret), cl.w.SetCipher(secret)); err != nil {
		s.ending = EndEncryption
		return false
	}
	var p auth.Profile
	if gone := s.whileConnected(ctx, func(ctx context.Context) { p, err = l.Join(ctx, cl.address.Addr()) }); gone != nil {
		return s.broke(gone)
	}
	if err != nil {
		return s.unverified(err)
	}
	if !s.nameAllowed(p.Name) {
		return s.refuse(EndBadName, s.because("kick-name"))
	}
	cl.id, cl.name, cl.properties, cl.key, cl.online = p.ID, p.Name, p.Properties, start.Key, true
	return true
}

func (s *Session) nameAllowed(name string) bool {
	return packet.ValidName(name) || s.set().OddNames && name != "" && printable(name) == name
}

// unverified refuses a login that the session server or the client's key does not support.
func (s *Session) unverified(err error) bool {
	e := EndAuthDown
	switch {
	case errors.Is(err, auth.ErrUnverified):
		e = EndUnauthenticated
	case errors.Is(err, auth.ErrKeyMissing), errors.Is(err, auth.ErrKeyExpired), errors.Is(err, auth.ErrKeyInvalid):
		e = EndBadKey
	case errors.Is(err, auth.ErrServersDown):
		s.log.Error("players cannot be authenticated", "error", err)
	}
	why, ok := auth.Reason(err)
	if !ok {
		why = s.say("kick-encryption")
	}
	return s.refuse(e, reason{text: why})
}

// whileConnected runs f, which waits for somebody else, and cancels it when the client leaves, has had its time or is
// ordered to go; then it returns why. The client should send nothing meanwhile; if it does, that stays in the reader.
func (s *Session) whileConnected(ctx context.Context, f func(context.Context)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	heard := make(chan error, 1)
	go func() {
		err := errQuit
		defer func() { heard <- err }()
		defer s.caught()
		if err = s.client.r.Fill(); err != nil {
			cancel()
		}
	}()
	var err error
	canceled := false
	func() {
		defer func() { // Wait for the reader: even after a panic nobody else may be reading when it is released.
			canceled = ctx.Err() != nil
			s.client.conn.SetReadDeadline(time.Unix(1, 0))
			err = <-heard
		}()
		f(ctx)
	}()
	s.patience(s.set().Timeouts.Login)
	switch {
	case canceled && err == nil:
		return context.DeadlineExceeded
	case canceled || err != nil && !isTimeout(err):
		return err
	}
	return nil
}
