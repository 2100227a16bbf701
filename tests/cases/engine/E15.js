// source: quickjs-ng issue 467; xahaud issue 474
// rule: there is no Intl, and the time zone is UTC
// expected: {"intl":"undefined","number":"1234.5","date":"Thu Jan 01 1970 00:00:00 GMT+0000","offset":0,"local":"01/01/1970, 12:00:00 AM","noon":12,"parsed":"2024-01-02T03:04:05.000Z","big":"12345"}
export default {
  run(_) {
    return {
      intl: typeof Intl, number: (1234.5).toLocaleString("de-DE"), date: new Date(0).toString().slice(0, 33),
      offset: new Date(1e12).getTimezoneOffset(), local: new Date(0).toLocaleString("de-DE", { timeZone: "Asia/Tokyo" }),
      noon: new Date(12 * 3_600_000).getHours(), parsed: new Date("2024-01-02T03:04:05").toISOString(), big: 12345n.toLocaleString("en"),
    };
  },
};
