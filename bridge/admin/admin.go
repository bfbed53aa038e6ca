// Package admin shows the state of the program over HTTP: /healthz for watchdogs, /metrics for Prometheus. It promises
// that strangers learn nothing but that it is up, and that every counter is there from the start, at zero, so that a
// rate over it is right from the first event on.
package admin

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/earshot-mc/earshot/handshake/front"
)

// Admin holds the metrics and serves both pages. Add all metrics before it serves.
type Admin struct {
	networks atomic.Pointer[[]netip.Prefix]
	hosts    atomic.Pointer[[]string]
	registry *prometheus.Registry
	health   func() Health
}

// Health is the content of /healthz.
type Health struct {
	OK bool // answers 200; else 503
	// State is a word for it, such as "running" or "stopping".
	State string
	// Details are shown to the allowed networks only: numbers, texts.
	Details map[string]any
}

// Loopback returns the networks that may see everything unless others are named.
func Loopback() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

// New makes the pages. networks may read /metrics and the details of /healthz; nil is [Loopback], an empty list nobody.
// health is called for each request to /healthz.
func New(networks []netip.Prefix, health func() Health) *Admin {
	a := &Admin{registry: prometheus.NewRegistry(), health: health}
	a.SetNetworks(networks)
	a.SetHosts(nil)
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return a
}

// SetNetworks changes who may see everything, as New has it.
func (a *Admin) SetNetworks(networks []netip.Prefix) {
	if networks == nil {
		networks = Loopback()
	}
	a.networks.Store(&networks)
}

// SetHosts replaces the names by which everything may be asked for, in addition to any address and localhost; *.x is
// every name below x. A page of somebody else's can make a browser ask here by its own name, and read the answer.
func (a *Admin) SetHosts(names []string) { a.hosts.Store(&names) }

// Gauge adds a value that goes up and down. It panics, like the other methods that add, when the name is taken or not
// one that Prometheus allows.
func (a *Admin) Gauge(name, help string, read func() float64) {
	a.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// Counter adds a value that only grows.
func (a *Admin) Counter(name, help string, read func() float64) {
	a.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, read))
}

// Counters adds values that only grow, one for each value of a label. read has to emit every one of them each time,
// those at zero too.
func (a *Admin) Counters(name, help, label string, read func(emit func(value string, n float64))) {
	a.registry.MustRegister(newLabelled(name, help, label, prometheus.CounterValue, read))
}

// CountersBy does as Counters with several labels; emit gets their values in the same order.
func (a *Admin) CountersBy(name, help string, labels []string, read func(emit func(n float64, values ...string))) {
	a.registry.MustRegister(&labelled{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue, read})
}

// Gauges adds values that go up and down, one for each value of a label. A value of the label that read does not emit
// is gone.
func (a *Admin) Gauges(name, help, label string, read func(emit func(value string, n float64))) {
	a.registry.MustRegister(newLabelled(name, help, label, prometheus.GaugeValue, read))
}

// Other is the label of values that a [Admin.Tally] was not told of beforehand.
const Other = "other"

// Tally adds counters, one for each value, and returns the function that counts. It may be called from any goroutine.
func (a *Admin) Tally(name, help, label string, values []string) (count func(value string)) {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	a.registry.MustRegister(vec)
	known := map[string]prometheus.Counter{Other: vec.WithLabelValues(Other)}
	for _, v := range values {
		known[v] = vec.WithLabelValues(v)
	}
	return func(value string) {
		c, ok := known[value]
		if !ok {
			c = known[Other] // rather than a new one: labels must not multiply
		}
		c.Inc()
	}
}

// Each emits every series that /metrics has with a single value, as name{label="value"}.
func (a *Admin) Each(emit func(series string, n float64)) error {
	families, err := a.registry.Gather()
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			series := f.GetName()
			if len(labels) > 0 {
				series += "{" + strings.Join(labels, ",") + "}"
			}
			switch {
			case m.Counter != nil:
				emit(series, m.GetCounter().GetValue())
			case m.Gauge != nil:
				emit(series, m.GetGauge().GetValue())
			case m.Untyped != nil:
				emit(series, m.GetUntyped().GetValue())
			}
		}
	}
	return err
}

// labelled is the collector of Counters and Gauges.
type labelled struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(emit func(n float64, values ...string))
}

func newLabelled(name, help, label string, kind prometheus.ValueType, read func(emit func(value string, n float64))) *labelled {
	return &labelled{prometheus.NewDesc(name, help, []string{label}, nil), kind, func(emit func(n float64, values ...string)) {
		read(func(value string, n float64) { emit(n, value) })
	}}
}

func (l *labelled) Describe(out chan<- *prometheus.Desc) { out <- l.desc }

func (l *labelled) Collect(out chan<- prometheus.Metric) {
	l.read(func(n float64, values ...string) {
		out <- prometheus.MustNewConstMetric(l.desc, l.kind, n, values...)
	})
}

// refusal returns why somebody may not see everything, in a line that says what to change; empty: they may.
func (a *Admin) refusal(r *http.Request) string {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return "not from here"
	}
	addr := from.Addr().Unmap().WithZone("")
	for _, n := range *a.networks.Load() {
		switch {
		case !n.Contains(addr):
		case !front.Direct(r):
			return "not through a reverse proxy that http-proxies does not name, or that does not name the client"
		case !a.named(r.Host):
			return "not by this name: ask by an address, or name it under admin.hosts"
		default:
			return ""
		}
	}
	return "not for this network: add it to admin.networks"
}

func (a *Admin) allowed(r *http.Request) bool { return a.refusal(r) == "" }

// named tells whether host, of a request, is an address or one of our names. A request without one is from a program
// that has no name for us.
func (a *Admin) named(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil || host == "" || host == "localhost" {
		return true
	}
	return slices.ContainsFunc(*a.hosts.Load(), func(name string) bool {
		name = strings.ToLower(name)
		below, wild := strings.CutPrefix(name, "*")
		return host == name || wild && len(below) > 1 && strings.HasSuffix(host, below)
	})
}

// Metrics serves /metrics.
func (a *Admin) Metrics() http.Handler {
	page := sync.OnceValue(func() http.Handler {
		return promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch why := a.refusal(r); {
		case why != "":
			http.Error(w, why, http.StatusForbidden)
		case onlyReads(w, r):
			page().ServeHTTP(w, r)
		}
	})
}

// Healthz serves /healthz.
func (a *Admin) Healthz() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !onlyReads(w, r) {
			return
		}
		h := a.health()
		body := map[string]any{}
		if a.allowed(r) {
			for k, v := range h.Details {
				body[k] = v
			}
		}
		body["state"] = h.State
		b, err := json.Marshal(body)
		if err != nil {
			http.Error(w, "details cannot be encoded", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if !h.OK {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		w.Write(append(b, '\n'))
	})
}

// onlyReads refuses other methods than GET and HEAD.
func onlyReads(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	http.Error(w, "only GET", http.StatusMethodNotAllowed)
	return false
}
