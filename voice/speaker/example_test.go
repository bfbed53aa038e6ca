package speaker_test

import (
	"fmt"
	"log"

	"github.com/google/uuid"

	"github.com/earshot-mc/earshot/bridge/world"
	"github.com/earshot-mc/earshot/voice"
	"github.com/earshot-mc/earshot/voice/opus"
	"github.com/earshot-mc/earshot/voice/soundfile"
	"github.com/earshot-mc/earshot/voice/speaker"
)

// A jukebox in the spawn of the lobby. Programs that play Opus packets or microphones only need neither opus nor
// soundfile, and so no cgo.
func Example() {
	var gateway *voice.Gateway // the one that the players are connected to

	jukebox, err := gateway.Speakers().Open(speaker.Spec{
		// The same each time, so that players keep their volume for it.
		ID:   uuid.MustParse("6f1c2f0e-6c1e-4b6e-9d43-2f6f3f0d9c11"),
		Name: "Jukebox", Owner: "lobby",
		Backend: "lobby", World: "minecraft:overworld", X: 10, Y: 65, Z: -3,
		Volume: 0.8, Range: 32,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer jukebox.Close()

	file, err := soundfile.Open("song.ogg")
	if err != nil {
		log.Fatal(err)
	}
	encoder, err := opus.NewEncoder()
	if err != nil {
		log.Fatal(err)
	}
	song, err := jukebox.PlayPCM(file, encoder) // which closes the file in the end
	if err != nil {
		log.Fatal(err)
	}
	if err := song.Err(); err != nil { // waits until it has been played
		fmt.Println("cut off:", err)
	}
}

// A stage: what one player says is heard around a second place, too.
func ExampleChannel_Relay() {
	var gateway *voice.Gateway
	var singer *world.Player

	stage, err := gateway.Speakers().Open(speaker.Spec{Name: "Stage", Backend: "lobby", World: "minecraft:overworld", Y: 70, Volume: 1, Range: 100})
	if err != nil {
		log.Fatal(err)
	}
	defer stage.Close()
	show, err := stage.Relay(singer.ID)
	if err != nil {
		log.Fatal(err)
	}
	show.Stop()
}

// Sound that comes into being elsewhere, in pieces of any length.
func ExampleQueue() {
	var channel *speaker.Channel
	var encoder *opus.Encoder

	queue := speaker.NewQueue(speaker.SampleRate / 2) // half a second: what does not fit is dropped
	if _, err := channel.PlayPCM(queue, encoder); err != nil {
		log.Fatal(err)
	}
	queue.Write(make([]int16, 441))
	queue.End()
}
