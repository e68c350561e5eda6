/*
 * gate.pml: the protocol of gate.c above its word (word.pml): lines, preemption by librdkafka's yield flag, lending,
 * close with a rebalance that another thread answers, destroy with guards, and the poll that an event has asked for.
 * What gate.c does with mu held is one step. It must not model librdkafka beyond what makes the gate what it is: a queue
 * with messages, a sticky flag for one waiter, a message that ends the close and that only the close may take.
 *
 * Checked by spin: a CALL and a POLL are never inside at once unless lent (assert); no yield reaches a queue once a
 * close was admitted (assert); nobody but the close takes its last message (assert); nobody is inside when the handle
 * is freed (assert); whoever waits comes in, gives up or is refused, close and destroy end, all messages of the event's
 * poller arrive (no invalid end state).
 *
 *   here                 gate.c
 *   GRANT                grant
 *   send_yield           send_yield, poll_in_the_way, mark_stale
 *   poll_came_back       gate_again, take_stale
 *   refused              standing, while_ending
 *   beside               takes_beside
 *   the callback         gate_window_begins, gate_window_ends, borrower_in
 *   close, destroy       gate_closed, guard_enter, guard_leave, gate_destroyed
 *
 * -DEVENTS: a poller that is asked by an event, and a caller. Otherwise: a poller without limit, a caller that may run
 * out of time at the gate, one that closes and destroys, a guard.
 *
 * Mutants (-DMUTANT=n), each of which must be caught:
 *   1  a call that leaves lets nobody in
 *   2  whoever waits sends no yield
 *   3  others are admitted while a yield is on its way
 *   4  a poll that took our flag goes home to the application and is not counted on; the flag's debt is forgotten
 *   5  a call is not let in while the close waits for an answer
 *   6  destroy does not wait for guards
 *   7  a poll of 0 that finds a call inside comes back empty although an event has asked for it (EVENTS)
 *   8  polls are let in while the close runs
 *   9  who gives up stays in his line
 *  10  two flags for a lane are remembered as one: the poll has taken the first and not said so yet
 */
#ifndef MUTANT
#    define MUTANT 0
#endif
#define CALLS 2
#define MESSAGES 2

mtype = { OPEN, CLOSING, CLOSED, DESTROYING, GONE };
mtype = { OUTSIDE, WAITING, INSIDE, REFUSED };

mtype life = OPEN;
mtype poll = OUTSIDE, call = OUTSIDE, answer = OUTSIDE, end = OUTSIDE; /* the visits; end: close, then destroy */
bool dying = false;      /* end is a DEATH */
byte guards = 0, yielding = 0;
bool yielded = false;
byte stale = 0;          /* marks of the lane */
#if MUTANT == 10
#    define MOST_MARKS 1
#else
#    define MOST_MARKS 2
#endif
bool unanswered = false, lent = false; /* lent: the close runs the rebalance callback */

/* librdkafka */
bool flag = false, last = false;
byte messages = 0, sent = 0, got = 0, told = 0;
bool poll_in = false, guard_in = false;
byte calls_in = 0;

#define CLOSE_WAITS (end == WAITING)

/* Everybody who may come in. */
inline GRANT()
{
    if
    :: yielding > 0 && MUTANT != 3 -> skip /* who sends it comes back here */
    :: else ->
        if
        :: end == WAITING && !dying && poll != INSIDE && call != INSIDE -> end = INSIDE; life = CLOSING
        :: end == WAITING && dying && poll != INSIDE && call != INSIDE && (guards == 0 || MUTANT == 6) ->
            end = INSIDE; life = DESTROYING
        :: else -> skip
        fi;
        if
        :: call == WAITING && life != OPEN && !unanswered -> call = REFUSED
        :: call == WAITING && life == OPEN && poll != INSIDE && !CLOSE_WAITS -> call = INSIDE
        :: call == WAITING && life == CLOSING && unanswered && lent && answer != INSIDE -> call = INSIDE
        :: else -> skip
        fi;
        if
        :: answer == WAITING && life == CLOSING && unanswered && lent && call != INSIDE && MUTANT != 5 -> answer = INSIDE
        :: else -> skip
        fi;
        if
        :: poll == WAITING && life != OPEN && MUTANT != 8 -> poll = REFUSED
        :: poll == WAITING && (life == OPEN || MUTANT == 8) && call != INSIDE && call != WAITING && !CLOSE_WAITS ->
            poll = INSIDE
        :: else -> skip
        fi
    fi
}

/* Wakes the poll that is in the way: decided with mu, done without. */
inline send_yield()
{
    do
    :: atomic {
        poll == INSIDE && !yielded && life == OPEN && MUTANT != 2 ->
            yielded = true;
            yielding++;
            if
            :: stale < MOST_MARKS -> stale++
            :: else -> skip
            fi
       };
       atomic {
            assert(life == OPEN);
            flag = true
       };
       atomic { yielding--; GRANT() }
    :: else -> break
    od
}

/* Stands in its line until it is told. */
#define told_in(v) (v == INSIDE || v == REFUSED)

proctype poller()
{
    bool nothing, again;
    do
    :: atomic {
        if
        :: life != OPEN && MUTANT != 8 -> break
        :: life == GONE -> break
        :: else -> poll = WAITING; GRANT()
        fi
       };
       told_in(poll);
       if
       :: poll == REFUSED -> poll = OUTSIDE; break
       :: else -> skip
       fi;
       again = true;
       do
       :: again ->
            atomic { assert(calls_in == 0 && life != GONE); poll_in = true };
            if
            :: atomic { last -> assert(false) }
            :: atomic { messages > 0 -> messages--; nothing = false }
            :: atomic { messages == 0 && flag -> flag = false; nothing = true }
            fi;
            poll_in = false;
            /* poll_came_back */
            atomic {
                again = false;
                if
                :: nothing && (stale > 0 || yielded) && MUTANT != 4 && life == OPEN ->
                    stale = (stale > 0 -> stale - 1 : 0);
                    yielded = false;
                    if
                    :: call == WAITING || end == WAITING -> poll = WAITING; GRANT()
                    :: else -> skip
                    fi;
                    again = true
                :: else -> skip
                fi
            };
            told_in(poll);
            if
            :: poll == REFUSED -> again = false
            :: else -> skip
            fi
       :: else -> break
       od;
       atomic {
            if
            :: nothing && poll != REFUSED && life == OPEN -> assert(false) /* the application saw our yield */
            :: else -> skip
            fi;
            poll = OUTSIDE;
            yielded = false;
            GRANT()
       }
    od
}

proctype caller()
{
    byte n = 0;
    do
    :: n == CALLS -> break
    :: else ->
        n++;
        atomic {
            if
            :: life != OPEN && !unanswered -> call = REFUSED
            :: else -> call = WAITING; GRANT()
            fi
        };
        send_yield();
        if
        :: told_in(call)
        :: atomic { call == WAITING -> /* its own timeout */
                if
                :: MUTANT != 9 -> call = OUTSIDE
                :: else -> skip
                fi;
                GRANT()
           }
        fi;
        if
        :: call == INSIDE ->
            atomic { calls_in++; assert(!poll_in && calls_in == 1) };
            calls_in--;
            atomic {
                call = OUTSIDE;
                if
                :: MUTANT != 1 -> GRANT()
                :: else -> skip
                fi
            }
        :: else -> call = OUTSIDE
        fi
    od
}

/* Another thread of the application: the one that answers rebalances. */
proctype answerer()
{
    unanswered && lent;
    atomic { answer = WAITING; GRANT() };
    answer == INSIDE;
    atomic { calls_in++; assert(calls_in == 1) };
    calls_in--;
    atomic { unanswered = false; answer = OUTSIDE; GRANT() }
}

proctype guard()
{
    bool in = false;
    atomic {
        if
        :: life == OPEN || life == CLOSING || life == CLOSED -> guards++; in = true
        :: else -> skip
        fi
    };
    if
    :: in ->
        atomic { assert(life != GONE); guard_in = true };
        guard_in = false;
        atomic { guards--; GRANT() }
    :: else -> skip
    fi
}

proctype closer()
{
    atomic { end = WAITING; GRANT() };
    send_yield();
    end == INSIDE;
    assert(!poll_in && calls_in == 0);
    atomic { unanswered = true; lent = true; GRANT() };
    !unanswered;
    atomic { lent = false; GRANT() };
    call != INSIDE && answer != INSIDE; /* the window's end waits for borrowers */
    assert(calls_in == 0);
    last = true;
    atomic { last -> last = false };
    atomic { life = CLOSED; end = OUTSIDE; GRANT() };
    /* and destroys */
    atomic { dying = true; end = WAITING; GRANT() };
    end == INSIDE;
    atomic { assert(!poll_in && calls_in == 0 && !guard_in); life = GONE; end = OUTSIDE; GRANT() }
}

/* A message comes; the event is told when the queue was empty. */
proctype broker()
{
    do
    :: sent == MESSAGES -> break
    :: else -> atomic {
            sent++;
            if
            :: messages == 0 -> told++
            :: else -> skip
            fi;
            messages++
       }
    od
}

proctype event_poller()
{
    bool more, in;
    do
    :: got == MESSAGES -> break
    :: told > 0 ->
        told--;
        more = true;
        do
        :: more ->
            atomic {
                in = true;
                if
                :: call != OUTSIDE && MUTANT == 7 -> in = false
                :: else -> poll = INSIDE /* in turn, or beside */
                fi
            };
            if
            :: in ->
                atomic {
                    if
                    :: messages > 0 -> messages--; got++
                    :: else -> more = false
                    fi
                };
                atomic { poll = OUTSIDE; yielded = false; GRANT() }
            :: else -> more = false
            fi
        :: else -> break
        od
    od
}

/* Whose calls the events come beside. */
proctype other_caller()
{
    byte n = 0;
    do
    :: n == CALLS -> break
    :: else ->
        n++;
        atomic { call = WAITING; GRANT() };
        call == INSIDE;
        atomic { call = OUTSIDE; GRANT() }
    od
}

init {
    atomic {
#ifdef EVENTS
        run event_poller();
        run other_caller();
        run broker()
#else
        run poller();
        run caller();
        run closer();
        run answerer();
        run guard();
        run broker()
#endif
    }
}
