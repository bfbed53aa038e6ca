package peer

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Account is what a client needs to join a server in online mode.
type Account struct{ URL, Name, ID, Token string } // ID: 32 hex digits

// Sessions is a session server like the one of the game's accounts: clients announce there which server they join, and
// servers ask there whether they did.
type Sessions struct {
	URL string

	mu       sync.Mutex
	accounts map[string]account // by token
	joined   map[string]string  // name -> server id announced
	asked    []http.Request
	down     bool
}

type account struct {
	Account
	properties []Property
}

// NewSessions starts a session server that ends with the test.
func NewSessions(t testing.TB) *Sessions {
	s := &Sessions{accounts: map[string]account{}, joined: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /session/minecraft/join", s.join)
	mux.HandleFunc("GET /session/minecraft/hasJoined", s.hasJoined)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	s.URL = srv.URL
	return s
}

// Account makes an account whose ID depends on the name alone. Its properties are what servers are told about it;
// without a signature they are unsigned.
func (s *Sessions) Account(name string, properties ...Property) *Account {
	id := md5.Sum([]byte("account " + name))
	token := md5.Sum([]byte("token " + name))
	a := Account{URL: s.URL, Name: name, ID: hex.EncodeToString(id[:]), Token: hex.EncodeToString(token[:])}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accounts[a.Token] = account{a, properties}
	return &a
}

// Down makes it answer everything with an error, or not any more.
func (s *Sessions) Down(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// Asked returns the queries of servers, as they came.
func (s *Sessions) Asked() (queries []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.asked {
		queries = append(queries, r.URL.RawQuery)
	}
	return queries
}

func (s *Sessions) join(w http.ResponseWriter, r *http.Request) {
	var q struct{ AccessToken, SelectedProfile, ServerID string }
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&q)
	s.mu.Lock()
	defer s.mu.Unlock()
	a, known := s.accounts[q.AccessToken]
	switch {
	case s.down:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case err != nil || !known || a.ID != q.SelectedProfile || q.ServerID == "":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		w.Write([]byte(`{"error":"ForbiddenOperationException","errorMessage":"Invalid token."}`))
	default:
		s.joined[a.Name] = q.ServerID
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *Sessions) hasJoined(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, *r)
	if s.down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	name := r.URL.Query().Get("username")
	if id := s.joined[name]; id == "" || id != r.URL.Query().Get("serverId") {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	delete(s.joined, name) // good for one login
	for _, a := range s.accounts {
		if a.Name != name {
			continue
		}
		type property struct {
			Name      string `json:"name"`
			Value     string `json:"value"`
			Signature string `json:"signature,omitempty"`
		}
		props := []property{}
		for _, p := range a.properties {
			props = append(props, property(p))
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"id": a.ID, "name": a.Name, "properties": props})
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
