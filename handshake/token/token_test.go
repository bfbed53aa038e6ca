package token

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

func mint(t *testing.T, i *Issuer, player uuid.UUID) string {
	t.Helper()
	token, ttl, err := i.Mint(player)
	if err != nil {
		t.Fatal(err)
	}
	if ttl != 60*time.Second {
		t.Fatalf("lives %v", ttl)
	}
	return token
}

var ann, bob = uuid.UUID{1}, uuid.UUID{2}

func TestOneUse(t *testing.T) {
	i := New(10)
	token := mint(t, i, ann)
	if !i.Redeem(token, ann) {
		t.Fatal("a fresh token is refused")
	}
	if i.Redeem(token, ann) {
		t.Fatal("redeemed twice")
	}
}

func TestBoundToThePlayer(t *testing.T) {
	i := New(10)
	token := mint(t, i, ann)
	other := mint(t, i, bob)
	if i.Redeem(token, bob) || i.Redeem(other, ann) || i.Redeem(token, uuid.UUID{3}) || i.Redeem("", uuid.UUID{3}) {
		t.Fatal("redeemed by another player")
	}
	if i.Redeem("", ann) || i.Redeem(token[1:], ann) || i.Redeem(token+"=", ann) {
		t.Fatal("a wrong token is taken")
	}
	if !i.Redeem(token, ann) || !i.Redeem(other, bob) {
		t.Fatal("wrong attempts used the right token up")
	}
}

func TestNewVoidsOld(t *testing.T) {
	i := New(10)
	old := mint(t, i, ann)
	token := mint(t, i, ann)
	if i.Redeem(old, ann) {
		t.Fatal("the former token still works")
	}
	if !i.Redeem(token, ann) {
		t.Fatal("the new token does not work")
	}
}

func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := New(10)
		token := mint(t, i, ann)
		time.Sleep(60*time.Second - 1)
		if !i.Redeem(token, ann) {
			t.Fatal("dead before its time")
		}
		token = mint(t, i, ann)
		time.Sleep(60 * time.Second)
		if i.Redeem(token, ann) {
			t.Fatal("lives too long")
		}
	})
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := New(10)
		for range 5 {
			mint(t, i, ann)
		}
		last := func() error { _, _, err := i.Mint(ann); return err }
		if err := last(); !errors.Is(err, ErrRateLimited) {
			t.Fatalf("a sixth at once: %v", err)
		}
		mint(t, i, bob) // has a budget of its own
		i.Forget(ann)
		if err := last(); !errors.Is(err, ErrRateLimited) {
			t.Fatalf("rejoining gave a new budget: %v", err)
		}
		time.Sleep(time.Second - time.Millisecond)
		if err := last(); !errors.Is(err, ErrRateLimited) {
			t.Fatalf("before a second is over: %v", err)
		}
		time.Sleep(time.Millisecond)
		token := mint(t, i, ann)
		if err := last(); !errors.Is(err, ErrRateLimited) {
			t.Fatalf("two in a second: %v", err)
		}
		if !i.Redeem(token, ann) {
			t.Fatal("a refusal voided the token")
		}
	})
}

func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := New(10)
		token := mint(t, i, ann)
		i.Forget(ann)
		i.Forget(bob) // unknown: nothing happens
		if i.Redeem(token, ann) {
			t.Fatal("a token outlived its player's stay")
		}
		time.Sleep(time.Minute)
		i.Forget(ann)
		if len(i.players) != 0 {
			t.Fatalf("%d players remembered", len(i.players))
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := New(3)
		for n := range 3 {
			mint(t, i, uuid.UUID{byte(n)})
		}
		if _, _, err := i.Mint(uuid.UUID{9}); !errors.Is(err, ErrRateLimited) {
			t.Fatalf("a fourth player: %v", err)
		}
		token := mint(t, i, uuid.UUID{0}) // known players go on
		time.Sleep(time.Minute)
		mint(t, i, uuid.UUID{9})
		if len(i.players) != 1 || i.Redeem(token, uuid.UUID{0}) {
			t.Fatalf("%d players remembered", len(i.players))
		}
	})
}

func TestTokensAreRandomAndNotKept(t *testing.T) {
	i := New(1000)
	seen := map[string]bool{}
	for n := range 1000 {
		token := mint(t, i, uuid.UUID{byte(n), byte(n >> 8)})
		if b, err := base64.RawURLEncoding.DecodeString(token); err != nil || len(b) != 32 || seen[token] {
			t.Fatalf("token %q: %d bytes, %v", token, len(b), err)
		}
		seen[token] = true
	}
	dump := fmt.Sprintf("%#v", i.players)
	for _, e := range i.players {
		dump += fmt.Sprintf("%s%#v", e.hash[:], *e)
	}
	for token := range seen {
		secret, _ := base64.RawURLEncoding.DecodeString(token)
		if strings.Contains(dump, token) || strings.Contains(dump, string(secret)) {
			t.Fatal("the issuer keeps a token")
		}
	}
}

func TestOnlyOneOfManyRedeems(t *testing.T) {
	i := New(10)
	token := mint(t, i, ann)
	var wg sync.WaitGroup
	var won atomic.Int32
	for range 50 {
		wg.Go(func() {
			if i.Redeem(token, ann) {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d redeemed", won.Load())
	}
}
