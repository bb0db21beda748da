package cm

import "container/heap"

// numbers gives each user the lowest number that is free, as an xarray does.
type numbers struct {
	next  uint32 // all from here on are free
	freed lowestFirst
}

func (n *numbers) take() uint32 {
	if len(n.freed) > 0 {
		return heap.Pop(&n.freed).(uint32)
	}
	n.next++
	return n.next - 1
}

func (n *numbers) give(v uint32) { heap.Push(&n.freed, v) }

// lowestFirst is a heap.Interface.
type lowestFirst []uint32

func (l lowestFirst) Len() int           { return len(l) }
func (l lowestFirst) Less(i, k int) bool { return l[i] < l[k] }
func (l lowestFirst) Swap(i, k int)      { l[i], l[k] = l[k], l[i] }
func (l *lowestFirst) Push(v any)        { *l = append(*l, v.(uint32)) }
func (l *lowestFirst) Pop() any {
	last := len(*l) - 1
	v := (*l)[last]
	*l = (*l)[:last]
	return v
}
