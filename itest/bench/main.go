// Bench prints what Earshot costs beside what the machine can do at best, measured in the same run: voice against a
// bare fan-out, the proxy against an io.Copy relay. Every server is a process of its own on loopback.
//
//	go run ./itest/bench [-only voice|proxy] [-rounds N] [-window D]
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) > 2 { // children
		switch os.Args[1] {
		case "fanout":
			log.Fatal(fanout(os.Args[2]))
		case "relay":
			log.Fatal(relay(os.Args[2], false))
		case "copy":
			log.Fatal(relay(os.Args[2], true))
		case "answer":
			log.Fatal(answer())
		}
	}
	only := flag.String("only", "", "voice or proxy")
	rounds := flag.Int("rounds", 3, "rounds; figures are medians; voice is measured for a second each in turn, for as long in all")
	window := flag.Duration("window", 4*time.Second, "measured time of each run")
	flag.Parse()

	dir, err := os.MkdirTemp("", "earshot-bench")
	if err != nil {
		log.Fatal(err)
	}
	status := 0
	defer func() {
		os.RemoveAll(dir)
		if why := recover(); why != nil {
			panic(why) // os.Exit would hide it
		}
		os.Exit(status)
	}()
	earshot, target := filepath.Join(dir, "earshot"), filepath.Join(dir, "voicetarget")
	for out, pkg := range map[string]string{earshot: "./cmd/earshot", target: "./itest/voicetarget"} {
		cmd := exec.Command("go", "build", "-o", out, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if b, err := cmd.CombinedOutput(); err != nil {
			log.Printf("go build %s: %v\n%s", pkg, err, b)
			status = 1
			return
		}
	}
	fmt.Printf("%s, %s, %d CPUs, %s; medians of %d rounds of %v, for voice of turns of a second for as long\n", time.Now().Format(time.DateTime), machine(), runtime.NumCPU(), runtime.Version(), *rounds, *window)
	good := true
	if *only != "proxy" {
		good = insideTable() && good
		good = voiceTable(target, max(1, int(time.Duration(*rounds)**window/time.Second))) && good
	}
	if *only != "voice" {
		good = proxyTable(earshot, dir, *rounds, *window) && good
	}
	if !good {
		fmt.Println("some goals were missed (marked MISSED)")
		status = 1
	}
}

func verdict(ok bool, goal string, good *bool) string {
	if ok {
		return "ok      " + goal
	}
	*good = false
	return "MISSED  " + goal
}

func selfPath() string {
	p, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	return p
}
