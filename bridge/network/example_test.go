package network_test

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/earshot-mc/earshot/bridge/network"
	"github.com/earshot-mc/earshot/configs"
)

// This program runs a network of its own. Settings come from earshot.yml or from environment variables.
func Example() {
	dir, err := os.MkdirTemp("", "earshot")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	conf, err := configs.Load("", dir, []string{"EARSHOT_LISTEN=127.0.0.1:0", "EARSHOT_ONLINE=false", "EARSHOT_VOICE_RANGE=32"})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	n, err := network.New(conf, network.Options{Dir: dir, Started: func(is network.Facts) {
		defer stop()
		answer, err := http.Get(fmt.Sprintf("http://%s/healthz", is.Addr))
		if err != nil {
			panic(err)
		}
		answer.Body.Close()
		fmt.Println("voices carry", is.Config.Voice.Range, "blocks; /healthz:", answer.Status)
	}})
	if err != nil {
		panic(err)
	}
	if err := n.Run(ctx); err != nil {
		panic(err)
	}
	fmt.Println("stopped")
	// Output:
	// voices carry 32 blocks; /healthz: 200 OK
	// stopped
}
