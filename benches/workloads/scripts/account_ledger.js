// Plays transactions against accounts: classes with private fields, inheritance, a factory, getters and an own error.
class InsufficientFunds extends Error {
  constructor(account, cents) {
    super(`${account.owner} lacks ${cents - account.available} cents`);
    this.name = "InsufficientFunds";
  }
}

class Account {
  #cents = 0;
  #entries = [];

  static open({ owner, limit }) {
    return limit ? new CreditAccount(owner, limit) : new Account(owner);
  }

  constructor(owner) {
    this.owner = owner;
  }

  get cents() {
    return this.#cents;
  }

  get available() {
    return this.#cents;
  }

  get entries() {
    return this.#entries.length;
  }

  post(cents, note) {
    if (cents < 0 && this.available < -cents) throw new InsufficientFunds(this, -cents);
    this.#cents += cents;
    this.#entries.push({ cents, note });
  }
}

class CreditAccount extends Account {
  constructor(owner, limit) {
    super(owner);
    this.limit = limit;
  }

  get available() {
    return super.available + this.limit;
  }
}

export default {
  async run({ accounts, transfers }) {
    const open = Object.fromEntries(accounts.map((account) => [account.owner, Account.open(account)]));
    const refused = [];
    for (const { from, to, cents } of transfers) {
      try {
        if (from) open[from].post(-cents, `to ${to}`);
        open[to].post(cents, `from ${from ?? "outside"}`);
      } catch (error) {
        if (!(error instanceof InsufficientFunds)) throw error;
        refused.push(error.message);
      }
    }
    const balances = Object.values(open).map(({ owner, cents, entries }) => ({ owner, cents, entries }));
    return { balances, refused };
  },
};
