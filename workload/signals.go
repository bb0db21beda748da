package workload

import "fmt"

// checkSignals refuses a load that would wait for itself: when all that it has signalled has
// completed, the requests since then leave no room in the window for another post, and none of them
// will complete.
//
// A thread has posted a multiple of postlist on a QP, and comes by each of them: it is as many
// requests beyond a multiple of signal_every as the greatest common divisor of the two allows, or
// fewer.
func (l *Load) checkSignals() error {
	need := l.SignalEvery - gcd(l.SignalEvery, l.Postlist) + l.Postlist
	if need <= l.share() || l.Latency || l.unanswered() || l.Messages > 0 && l.QPs*l.stuckAt() >= l.Messages {
		return nil
	}
	return fmt.Errorf("window is %d: postlist %d and signal_every %d are not multiples of each other, so a thread would wait for a completion that no request asks for: "+
		"give window: %d, or signal_every: %d", l.Window, l.Postlist, l.SignalEvery, need*l.QPShare, l.Postlist)
}

// stuckAt is how many requests a thread posts on a QP, of a load that waits for itself, until it
// does.
func (l *Load) stuckAt() int {
	n := l.Postlist
	for n%l.SignalEvery <= l.share()-l.Postlist {
		n += l.Postlist
	}
	return n
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
