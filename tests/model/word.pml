/*
 * word.pml: the atomic word of gate.c (THE WORD, NO WAKE-UP IS LOST): the lonely visit that enters and leaves by one
 * compare-and-swap, and everybody else, who takes mu. What is under mu is one step here where nothing outside of mu
 * can see the difference; every access to the word or to a window is a step of its own. It must not know more of the
 * gate than that: polls, yields and the end of a handle are in gate.pml.
 *
 * Checked by spin: no two visits are active at once (assert), and nobody sleeps for ever (no invalid end state).
 *
 *   here                gate.c
 *   enter, slow path    gate_enter, slow_take, line_up, not_at_once
 *   window              gate_window_begins, gate_window_ends, borrower_in
 *   leave               gate_leave, slow_drop, nothing_to_know
 *   GRANT               grant, settle
 *
 * Mutants (-DMUTANT=n), each of which must be caught:
 *   1  a leave does not let the next one in
 *   2  a window looks at the word before it is open
 *   3  who takes mu does not link the visit that he finds in the word
 *   4  the word goes back to 0 although somebody is inside
 *   5  an owner whose window ends does not wait for its borrower
 *   6  a lonely leave is a plain store
 */
#ifndef MUTANT
#    define MUTANT 0
#endif
#ifndef N
#    define N 3
#endif
#ifndef ROUNDS
#    define ROUNDS 1
#endif

#define SLOW 64
#define FREE 0

mtype = { OUTSIDE, WAITING, INSIDE, RETURNING };

byte word = 0;          /* 0, i+1 (that visit, FAST), SLOW, or SLOW + i+1 for the moment in which slow_take has it */
bool mu = false;
mtype state[N] = OUTSIDE;
bool linked[N] = false; /* in the list of occupants */
byte order[N] = 0;      /* when it was linked: borrowers came later */
byte clock = 0;
bool window[N] = false;
byte busy = 0; /* how many are inside librdkafka */

/* Does somebody linked and not lending stand in the way of i? */
inline blocked(i, result)
{
    byte k_;
    result = false;
    for (k_ : 0 .. N - 1) {
        if
        :: k_ != i && linked[k_] && !window[k_] && state[k_] == INSIDE -> result = true
        :: else -> skip
        fi
    }
}

inline link(i)
{
    linked[i] = true;
    clock++;
    order[i] = clock
}

/* An owner whose window is over goes on when no borrower that came after it is in. */
inline has_borrower(i, result)
{
    byte b_;
    result = false;
    for (b_ : 0 .. N - 1) {
        if
        :: b_ != i && linked[b_] && order[b_] > order[i] && state[b_] != OUTSIDE -> result = true
        :: else -> skip
        fi
    }
}

/* Lets in everybody who may come in. With mu. */
inline grant()
{
    byte g_;
    bool no_;
    for (g_ : 0 .. N - 1) {
        if
        :: state[g_] == RETURNING ->
            has_borrower(g_, no_);
            if
            :: !no_ -> state[g_] = INSIDE
            :: else -> skip
            fi
        :: state[g_] == WAITING ->
            blocked(g_, no_);
            if
            :: !no_ -> link(g_); state[g_] = INSIDE
            :: else -> skip
            fi
        :: else -> skip
        fi
    }
    g_ = 0;
    no_ = false
}

inline lock_take() { atomic { !mu -> mu = true } }
inline lock_drop() { mu = false }

inline slow_take(w)
{
    lock_take();
    if
    :: word >= SLOW -> skip
    :: else ->
        atomic { w = word; word = word + SLOW }; /* fetch_or */
        d_step {
            if
            :: w != 0 && MUTANT != 3 -> link(w - 1)
            :: else -> skip
            fi;
            w = 0
        };
        word = SLOW
    fi
}

inline slow_drop(n)
{
    d_step {
        n = 0;
        byte s_;
        for (s_ : 0 .. N - 1) {
            if
            :: (linked[s_] && MUTANT != 4) || state[s_] == WAITING -> n++
            :: else -> skip
            fi
        };
        s_ = 0;
        if
        :: n == 0 -> word = FREE
        :: else -> skip
        fi;
        n = 0
    };
    lock_drop()
}

inline goes_in()
{
    d_step { busy++; assert(busy == 1) }
}

inline nobody_waits()
{
    atomic { state[0] != WAITING && state[1] != WAITING && state[N - 1] != WAITING }
}

proctype visitor(byte i)
{
    byte round = 0, w = 0;
    bool no = false, done = false;

    do
    :: round == ROUNDS -> break
    :: else ->
        round++;
        /* enter */
        state[i] = INSIDE;
        atomic {
            if
            :: word == FREE -> word = i + 1; done = true
            :: else -> done = false
            fi
        };
        if
        :: done -> skip
        :: else ->
            slow_take(w);
            d_step {
                state[i] = OUTSIDE;
                blocked(i, no);
                if
                :: no -> state[i] = WAITING
                :: else -> link(i); state[i] = INSIDE
                fi;
                no = false
            };
            slow_drop(w);
            state[i] == INSIDE /* the futex */
        fi;

        goes_in();
        if
        :: true -> skip
        :: true -> /* a callback of the application */
            busy--;
#if MUTANT == 2
            done = (word == i + 1);
            window[i] = true;
#else
            window[i] = true;
            done = (word == i + 1);
#endif
            if
            :: done -> skip
            :: else ->
                slow_take(w);
                d_step { grant() };
                slow_drop(w)
            fi;
            /* It may wait for another thread's call: the gate is lent. */
            if
            :: true -> skip
            :: true -> nobody_waits()
            fi;
            /* and its end */
            window[i] = false;
            if
            :: word == i + 1 -> skip
            :: else ->
                slow_take(w);
                d_step {
                    has_borrower(i, no);
                    if
                    :: no && MUTANT != 5 -> state[i] = RETURNING
                    :: else -> skip
                    fi;
                    no = false;
                    grant()
                };
                slow_drop(w);
                state[i] == INSIDE
            fi;
            goes_in()
        fi;
        busy--;

        /* leave */
#if MUTANT == 6
        atomic { done = (word == i + 1 || word == SLOW + i + 1) };
        if
        :: done -> word = FREE
        :: else -> skip
        fi;
#else
        atomic {
            if
            :: word == i + 1 -> word = FREE; done = true
            :: else -> done = false
            fi
        };
#endif
        if
        :: done -> state[i] = OUTSIDE
        :: else ->
            slow_take(w);
            d_step {
                linked[i] = false;
                order[i] = 0;
                state[i] = OUTSIDE;
                if
                :: MUTANT != 1 -> grant()
                :: else -> skip
                fi;
                if
                :: !linked[0] && !linked[1] && !linked[N - 1] -> clock = 0
                :: else -> skip
                fi
            };
            slow_drop(w)
        fi
    od
}

init {
    atomic {
        byte p;
        for (p : 0 .. N - 1) { run visitor(p) }
    }
}
