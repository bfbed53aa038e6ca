package speaker

import (
	"errors"
	"io"
	"sync"
)

// Sound as this package takes it.
const (
	SampleRate = 48000 // Hz, mono
	FrameSize  = 960   // samples of one frame
)

// Samples is mono sound of 48 kHz.
type Samples interface {
	// Read fills pcm and returns how much of it. Less than all means that there is no more at the moment, and [io.EOF]
	// that nothing will follow. It is called every 20 ms and must not wait. Samples that are also an [io.Closer] are
	// closed when they are no longer played.
	Read(pcm []int16) (n int, err error)
}

// Encoder makes a packet of each frame; voice/opus has one.
type Encoder interface {
	// Encode appends the packet of one frame of FrameSize samples to dst.
	Encode(pcm []int16, dst []byte) ([]byte, error)
}

// Encode makes frames of samples. The last one is filled up with silence.
func Encode(s Samples, e Encoder) Frames { return &encoded{s: s, e: e} }

type encoded struct {
	s    Samples
	e    Encoder
	pcm  [FrameSize]int16
	have int
}

func (f *encoded) Next(dst []byte) ([]byte, error) {
	n, err := f.s.Read(f.pcm[f.have:])
	f.have += n
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return dst, err
	case err != nil && f.have == 0:
		return dst, io.EOF
	case err != nil:
		clear(f.pcm[f.have:])
	case f.have < FrameSize:
		return dst, nil
	}
	f.have = 0
	return f.e.Encode(f.pcm[:], dst)
}

func (f *encoded) Close() error {
	if c, ok := f.s.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Queue is Samples that are written as they come into being. Make one with [NewQueue].
type Queue struct {
	mu     sync.Mutex
	pcm    []int16
	most   int
	closed bool
}

// NewQueue returns a queue that holds at most so many samples; [SampleRate] of them are a second.
func NewQueue(samples int) *Queue { return &Queue{most: samples} }

// Write queues as many samples as there is room for, never waits, and returns their number: 0 after [Queue.End].
func (q *Queue) Write(pcm []int16) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return 0
	}
	n = min(len(pcm), q.most-len(q.pcm))
	q.pcm = append(q.pcm, pcm[:n]...)
	return n
}

// End says that nothing follows. Queued samples are still played.
func (q *Queue) End() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
}

// Read takes queued samples.
func (q *Queue) Read(pcm []int16) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := copy(pcm, q.pcm)
	q.pcm = q.pcm[:copy(q.pcm, q.pcm[n:])]
	if q.closed && n < len(pcm) {
		return n, io.EOF
	}
	return n, nil
}

// Close drops the queued samples. The queue's player calls it.
func (q *Queue) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.pcm = true, nil
	return nil
}
