/* What C can do with a State-EXP3 run: the yardstick of `limit.py`.

   The same rule as the engine, for one learner, one fixed delay and three draws a round: totals in the log domain,
   the play recomputed only when a total has changed, weights relative to a reference and clamped at exp(-700), sums
   in blocks of 16 that also serve the draw. Built with -O3 -march=native -ffast-math, so that exp is libmvec's.

   Where it can, it does less than the engine: charging, weighing and summing are one sweep over the actions. */

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

enum { BLOCK = 16 };

typedef struct {
    ptrdiff_t n_actions, n_blocks;
    double rate, reference, sum;
    double *totals, *weights, *blocks;
} Play;

/* totals += amount * column; weights = exp(rate * (reference - totals)); blocks and sum */
static void charge(Play *play, const double *restrict column, double amount) {
    double *restrict totals = play->totals, *restrict weights = play->weights;
    const double rate = play->rate, reference = play->reference;
    double sum = 0;
    for (ptrdiff_t b = 0; b < play->n_blocks; b++) {
        const ptrdiff_t first = BLOCK * b;
        double inside = 0;
        for (ptrdiff_t i = first; i < first + BLOCK; i++) {
            totals[i] += amount * column[i];
            weights[i] = exp(fmax(rate * (reference - totals[i]), -700.0));
            inside += weights[i];
        }
        play->blocks[b] = inside;
        sum += inside;
    }
    play->sum = sum;
}

static void move_reference(Play *play, const double *column) {
    double smallest = play->totals[0];
    for (ptrdiff_t i = 1; i < play->n_actions; i++) smallest = fmin(smallest, play->totals[i]);
    play->reference = smallest;
    charge(play, column, 0);
}

static ptrdiff_t draw_action(const Play *play, double u) {
    const double target = u * play->sum;
    double reached = 0;
    ptrdiff_t b = 0;
    while (b < play->n_blocks - 1 && reached + play->blocks[b] < target) reached += play->blocks[b++];
    ptrdiff_t i = BLOCK * b, last = BLOCK * b + BLOCK;
    if (last > play->n_actions) last = play->n_actions;
    for (last--; i < last; i++)
        if ((reached += play->weights[i]) >= target) break;
    return i;
}

static ptrdiff_t draw_state(const double *row, ptrdiff_t n_states, double u) {
    double reached = 0;
    ptrdiff_t last = 0;
    for (ptrdiff_t s = 0; s < n_states; s++) {
        if (row[s] <= 0) continue;
        last = s;
        if ((reached += row[s]) >= u) break;
    }
    return last;
}

static double reach(const Play *play, const double *restrict column) {
    const double *restrict weights = play->weights;
    double mass = 0;
    for (ptrdiff_t i = 0; i < BLOCK * play->n_blocks; i++) mass += weights[i] * column[i];
    return mass / play->sum;
}

/* `columns` is P transposed, its rows padded with zeros to whole blocks. Padding must not be drawn or summed: its
   totals start so high that its weights are the clamp's exp(-700), far below the last digit of any sum. */
int state_exp3(ptrdiff_t n_actions, ptrdiff_t n_states, ptrdiff_t horizon, ptrdiff_t delay, double rate,
               const double *P, const double *columns, const double *theta, const double *uniforms,
               int *actions, int *states, double *outcomes) {
    const ptrdiff_t n_blocks = (n_actions + BLOCK - 1) / BLOCK, width = BLOCK * n_blocks;
    double *memory = aligned_alloc(64, (size_t)(3 * width) * sizeof(double));
    double *waiting = malloc((size_t)(delay + 1) * sizeof(double));
    if (!memory || !waiting) return 1;
    Play play = {n_actions, n_blocks, rate, 0, 0, memory, memory + width, memory + 2 * width};
    for (ptrdiff_t i = 0; i < width; i++) play.totals[i] = i < n_actions ? 0 : 1e300;
    charge(&play, columns, 0);

    for (ptrdiff_t t = 0, slot = 0; t < horizon; t++, slot = slot == delay ? 0 : slot + 1) {
        const ptrdiff_t due = t - delay - 1;
        if (due >= 0 && outcomes[due] > 0) {
            const double *column = columns + width * states[due];
            charge(&play, column, outcomes[due] / waiting[slot]);
            if (play.sum < 1e-30) move_reference(&play, column);
        }
        const ptrdiff_t action = draw_action(&play, *uniforms++);
        const ptrdiff_t state = draw_state(P + n_states * action, n_states, *uniforms++);
        waiting[slot] = reach(&play, columns + width * state);
        const double mean = theta[n_states * t + state];
        double outcome = 0;
        if (mean > 0) {
            const double u = *uniforms++;
            outcome = mean <= 0.5 ? u > 1 - mean : u <= mean;
        }
        actions[t] = (int)action;
        states[t] = (int)state;
        outcomes[t] = outcome;
    }
    free(memory);
    free(waiting);
    return 0;
}
