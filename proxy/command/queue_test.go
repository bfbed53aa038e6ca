package command

import (
	"slices"
	"testing"
	"testing/synctest"
)

func TestQueueOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue
		var ran []int
		hold := make(chan struct{})
		q.Post(func() { <-hold })
		synctest.Wait() // it runs, and no longer waits
		for i := range MaxWaiting {
			if !q.Post(func() { ran = append(ran, i) }) {
				t.Fatalf("%d refused", i)
			}
		}
		if q.Post(func() {}) {
			t.Error("one more than may wait")
		}
		close(hold)
		synctest.Wait()
		if len(ran) != MaxWaiting || !slices.IsSorted(ran) {
			t.Errorf("ran %v", ran)
		}
		if !q.Post(func() { ran = nil }) {
			t.Error("refused when empty")
		}
		synctest.Wait()
		if ran != nil {
			t.Error("the second round did not run")
		}
		q.Close()
	})
}

func TestQueueClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queue
		hold, closed := make(chan struct{}), make(chan struct{})
		q.Post(func() { <-hold })
		synctest.Wait()
		q.Post(func() { t.Error("ran after Drop") })
		q.Drop()
		q.Post(func() { t.Error("ran after Close") })
		go func() { q.Close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Fatal("Close did not wait")
		default:
		}
		if q.Post(func() {}) {
			t.Error("a closed queue takes commands")
		}
		close(hold)
		<-closed
	})
}
