package model

import (
	"fmt"
	"syscall"

	"github.com/rdmasim/rdmasim/verbs"
)

// recvWR is a receive that is posted.
type recvWR struct {
	id     uint64
	pieces []Piece
	also   Statuses // with which it may fail when it is flushed
}

// SRQ is a shared receive queue.
type SRQ struct {
	World *World
	Cap   int // as granted
	CQ    *CQ // of an XRC SRQ
	SGEs  int // most of a receive, as granted; 0: not known
	Most  int // max_wr of ibv_query_srq, which counts spare receives of the driver
	list  []recvWR
	limit int
	taken int // receives ever
	used  int // places that are taken until the receive's completion is polled (p:mlx5/srq.c)
}

// Posted returns how many receives wait.
func (s *SRQ) Posted() int { return len(s.list) }

// PostRecv judges ibv_post_srq_recv of one receive.
func (s *SRQ) PostRecv(id uint64, pieces []Piece, err error) error {
	s.World.Cover.add(s.state(), OpPostRecv)
	if s.SGEs > 0 && len(pieces) > s.SGEs {
		return errnoIn(&rulePostRecv, err, syscall.EINVAL, syscall.ENOMEM)
	}
	if err != nil {
		if s.used >= s.Cap {
			return errnoIn(&rulePostRecv, err, syscall.ENOMEM)
		}
		return errnoIn(&rulePostRecv, err, 0)
	}
	s.used++
	s.list = append(s.list, recvWR{id: id, pieces: pieces})
	return nil
}

// Modify judges ibv_modify_srq with a limit.
func (s *SRQ) Modify(limit int, err error) error {
	s.World.Cover.add(s.state(), OpLimit)
	if limit > s.Most {
		return errnoIn(&ruleSetSRQ, err, syscall.EINVAL)
	}
	if err != nil && limit > s.Cap {
		return errnoIn(&ruleSetSRQ, err, syscall.EINVAL)
	}
	if err == nil {
		s.limit = limit
		if len(s.list) < limit { // at once on mlx5 (IBTA: when the number falls below)
			s.World.allow(verbs.EventSRQLimitReached, s, 0, &ruleLimit)
			s.limit = -limit // it may have fired
		}
	}
	return errnoIn(&ruleSetSRQ, err, 0)
}

// Query judges ibv_query_srq.
func (s *SRQ) Query(a verbs.SRQAttr, err error) error {
	s.World.Cover.add(s.state(), OpQuery)
	if err != nil {
		return errnoIn(&ruleSRQ, err, 0)
	}
	if got := int(a.Limit); got != s.limit && (s.limit >= 0 || got != -s.limit && got != 0) {
		return &Violation{&ruleSRQ, fmt.Sprintf("limit %d", max(s.limit, -s.limit)), fmt.Sprint(got)}
	}
	return nil
}

// pop takes the next receive.
func (s *SRQ) pop() (r recvWR) {
	r, s.list = s.list[0], s.list[1:]
	s.taken++
	switch {
	case s.limit > 0 && len(s.list) < s.limit:
		s.limit = 0
		s.World.allow(verbs.EventSRQLimitReached, s, 1, &ruleLimit)
	case s.limit < 0:
		s.World.allow(verbs.EventSRQLimitReached, s, 0, &ruleLimit)
	}
	return r
}
