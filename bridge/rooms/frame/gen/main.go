// Gen writes rooms-protocol.json.
package main

import (
	"log"
	"os"

	"github.com/earshot-mc/earshot/bridge/rooms/frame"
)

func main() {
	if err := os.WriteFile("rooms-protocol.json", frame.Generated(), 0o644); err != nil {
		log.Fatal(err)
	}
}
