package main

import (
	"bytes"
	"fmt"
	"log"
	"os/exec"
	"strconv"
	"strings"
)

// inside lists figures of the packages' own benchmarks, with their goals.
var inside = []struct {
	pkg, bench string
	unit       string
	most       float64
	what       string
}{
	{"./voice/hub", "BenchmarkTurnWithEverything/compile", "ns/op", 5e6, "compiling a turn of 1,000 players, 50 groups, 100 domains"},
	{"./voice/relation", "BenchmarkTurn1000", "ns/op", 5e6, "of that, the relation, with 150 domains and 1,200 listens and edges"},
	{"./voice/conn", "BenchmarkAllocations/v1", "allocs/op", 0, "allocations of a frame to 20 listeners: v1"},
	{"./voice/conn", "BenchmarkAllocations/v2", "allocs/op", 0, "the same: v2"},
	{"./voice/conn", "BenchmarkAllocations/spatial", "allocs/op", 0, "the same: spatial"},
	{"./voice/conn", "BenchmarkAllocations/soundboard", "allocs/op", 0, "the same: a clip"},
	{"./voice/conn", "BenchmarkAllocations/group", "allocs/op", 0, "the same: in a group"},
	{"./voice/conn", "BenchmarkAllocations/declared", "allocs/op", 0, "the same: by a declaration"},
	{"./voice/conn", "BenchmarkAllocations/speaker", "allocs/op", 0, "the same: a microphone out of a speaker"},
}

// insideTable prints them.
func insideTable() bool {
	fmt.Printf("%-70s %12s  %s\n", "voice, inside the process", "", "goal")
	good := true
	figures := map[string]map[string]float64{} // by package and benchmark, then by unit
	for _, f := range inside {
		if figures[f.pkg] == nil {
			figures[f.pkg] = map[string]float64{}
			name, _, _ := strings.Cut(f.bench, "/")
			out, err := exec.Command("go", "test", "-run", "^$", "-bench", "^"+name+"$", "-benchmem", f.pkg).CombinedOutput()
			if err != nil {
				log.Printf("go test -bench %s %s: %v\n%s", name, f.pkg, err, out)
			}
			readBenchmarks(out, func(bench, unit string, value float64) { figures[f.pkg][bench+" "+unit] = value })
		}
		value, ok := figures[f.pkg][f.bench+" "+f.unit]
		if !ok {
			log.Printf("%s has no figure of %s in %s", f.pkg, f.bench, f.unit)
			good = false
			continue
		}
		shown, goal := fmt.Sprint(value), fmt.Sprintf("%v", f.most)
		if f.unit == "ns/op" {
			shown, goal = fmt.Sprintf("%.2f ms", value/1e6), fmt.Sprintf("< %v ms", f.most/1e6)
		}
		fmt.Printf("%-70s %12s  %s\n", f.what, shown, verdict(value <= f.most, goal, &good))
	}
	return good
}

// readBenchmarks reads the output of go test: a name with the number of processors, how often it ran, and pairs of a
// value and its unit.
func readBenchmarks(out []byte, each func(bench, unit string, value float64)) {
	for line := range bytes.Lines(out) {
		words := strings.Fields(string(line))
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		name := words[0]
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			name = name[:i]
		}
		for i := 2; i+1 < len(words); i += 2 {
			if v, err := strconv.ParseFloat(words[i], 64); err == nil {
				each(name, words[i+1], v)
			}
		}
	}
}
